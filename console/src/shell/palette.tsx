// The palette: every page, Reconciler, Module, root and action, by typing a few letters of it.
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { call } from '../api/call';
import type { Kind, Page, Row } from '../api/generated';
import { actions } from '../lib/keys';
import { kinds, listableKinds, rootHref } from '../lib/kinds';
import { namespaceShown } from '../lib/namespace';
import { homeOf } from '../lib/paths';
import { navigate, useSettled } from '../lib/router';
import { MODULES, RECONCILER_FIELDS, RECONCILERS, useRows } from '../lib/store';
import { useModal } from '../ui/dialog';
import { Icon, type IconName } from '../ui/icon';
import { fit } from './fit';
import { systems, useEngine } from './nav';

interface Entry {
  id: string;
  title: string;
  what: string;
  icon: IconName;
  key?: string | undefined;
  words?: string | undefined;
  run: () => void;
}

const MOST = 60;
const ROOTS = 8;
/** Pages of a thousand that are looked through for what was typed. */
const PAGES = 12;

/** The first roots of a kind whose name has a word. The server looks through a page at a time, and says nothing of the others. */
async function search(kind: Kind, word: string, signal: AbortSignal): Promise<Row[]> {
  const found: Row[] = [];
  let next: string | null = null;
  for (let page = 0; page < PAGES && found.length < ROOTS; page += 1) {
    const answer: Page = await call('listObjects', { path: kind, query: { search: word, limit: 1000, continue: next, namespace: kind.namespaced ? namespaceShown() : undefined }, signal });
    found.push(...answer.items);
    next = answer.continue;
    if (!next) break;
  }
  return found.slice(0, ROOTS);
}

const NONE: Entry[] = [];

/** Roots whose name has what was typed, asked of the server: there may be very many. */
function useRoots(typed: string): Entry[] {
  const wanted = typed.trim();
  const settled = useSettled(wanted, 180);
  const [found, setFound] = useState({ of: '', entries: NONE });
  const known = kinds.value?.items;
  useEffect(() => {
    if (settled.length < 2) return;
    const stop = new AbortController();
    const word = settled.split(/[\s/]+/).at(-1) ?? settled;
    const asked = listableKinds().map(async (kind): Promise<Entry[]> => {
      return (await search(kind, word, stop.signal)).map((row) => {
        const to = rootHref(`${kind.group}/${kind.version}`, kind.kind, row.namespace, row.name) ?? '/console/engine';
        return { id: `root ${row.uid}`, title: row.namespace ? `${row.namespace}/${row.name}` : row.name, what: kind.kind, icon: 'box', run: () => navigate(to) };
      });
    });
    void Promise.allSettled(asked).then((answers) => {
      if (stop.signal.aborted) return;
      setFound({ of: settled, entries: answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])) });
    });
    return () => stop.abort();
  }, [settled, known]);
  // What was found for another word does not fit this one.
  return found.of === wanted ? found.entries : NONE;
}

function useEntries(typed: string): Entry[] {
  const reconcilers = useRows(RECONCILERS, { fields: RECONCILER_FIELDS });
  const modules = useRows(MODULES);
  const roots = useRoots(typed);
  const all = actions.value;
  const engine = useEngine();
  const fixed = useMemo(() => {
    const pages = [...systems(), ...engine].map(({ title, path, icon }): Entry => ({ id: `page ${path}`, title, what: 'Page', icon, run: () => navigate(path) }));
    const named = (title: string, what: string, path: string, icon: IconName): Entry => ({ id: `${what} ${title}`, title, what, icon, run: () => navigate(path) });
    return [
      ...pages,
      ...listableKinds().map((kind): Entry => ({ id: `new ${homeOf(kind)}`, title: `New ${kind.kind}`, what: 'Action', icon: 'plus', words: `create ${kind.group}`, run: () => navigate(`${homeOf(kind)}/new`) })),
      ...all.filter(({ isHidden }) => !isHidden).map(({ id, title, group, key, words, run }): Entry => ({ id, title, what: group, icon: 'arrow', key, words, run })),
      ...reconcilers.rows.value.flatMap(({ name }) => [
        named(name, 'Reconciler', `/engine/reconcilers/${encodeURIComponent(name)}`, 'refresh'),
        { ...named(`Plan a swap of ${name}`, 'Action', `/engine/reconcilers/${encodeURIComponent(name)}/plan`, 'swap'), words: 'module config' },
      ]),
      ...modules.rows.value.map(({ name }) => named(name, 'Module', `/engine/modules?name=${encodeURIComponent(name)}`, 'module')),
    ];
  }, [all, reconcilers.rows.value, modules.rows.value, kinds.value, engine.length]);
  return useMemo(() => {
    const rated = [...fixed, ...roots].flatMap((entry) => {
      const rate = fit(`${entry.title} ${entry.what} ${entry.words ?? ''}`, typed) ?? (entry.id.startsWith('root ') ? 5 : null);
      return rate === null ? [] : [{ entry, rate }];
    });
    if (typed.trim() !== '') rated.sort((one, other) => one.rate - other.rate);
    return rated.slice(0, MOST).map(({ entry }) => entry);
  }, [fixed, roots, typed]);
}

export function Palette({ onClose }: { onClose: () => void }) {
  const modal = useModal(onClose);
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  const [typed, setTyped] = useState('');
  const [active, setActive] = useState(0);
  const entries = useEntries(typed);
  const at = Math.min(active, Math.max(0, entries.length - 1));

  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: 'nearest' }), [at]);

  const choose = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    // After the dialog has given the focus back, so that the page may take it.
    setTimeout(entry.run);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setActive((at + step + entries.length) % Math.max(1, entries.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      choose(entries[at]);
    }
  };

  return (
    <dialog {...modal} class="dialog palette" aria-label="Go to">
      <div class="palette-head">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={entries.length > 0 ? `${id}-${at}` : undefined}
          aria-label="Go to a page, a Reconciler, a Module or a root, or do something"
          placeholder="Go to a page, a Reconciler, a root, or do something"
          autocomplete="off"
          spellcheck={false}
          autofocus
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setActive(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <ul ref={list} class="palette-list" id={id} role="listbox" aria-label="What was found">
        {entries.map((entry, index) => (
          <li key={entry.id} id={`${id}-${index}`} role="option" aria-selected={index === at} onMouseMove={() => index !== at && setActive(index)} onClick={() => choose(entry)}>
            <Icon name={entry.icon} />
            <span class="cut">{entry.title}</span>
            {entry.key && <kbd>{entry.key}</kbd>}
            <span class="what">{entry.what}</span>
          </li>
        ))}
      </ul>
      {entries.length === 0 && <p class="palette-none">Nothing is called so.</p>}
      <span class="sr-only" role="status">{entries.length === 1 ? '1 entry' : `${entries.length} entries`}</span>
    </dialog>
  );
}
