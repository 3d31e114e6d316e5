// What a plan found: the counts, what changes by kind and path, and every root that is not unchanged.
import { useMemo, useState } from 'preact/hooks';
import type { PlannedRoot, Summary, Verdict } from '../../api/generated';
import { rootHref } from '../../lib/kinds';
import { Button } from '../../ui/button';
import { CopyText } from '../../ui/copy';
import { Empty, Notice } from '../../ui/feedback';
import { Icon, type IconName } from '../../ui/icon';
import { SearchInput } from '../../ui/inputs';
import { Count, Section } from '../../ui/layout';
import type { Tone } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { type Column, Table } from '../../ui/table';
import { ChangeWord, ChildChanges, Fields } from './changes';
import { countsOf, type PlanState, shownRoots, verdictOf } from './plan-run';
import { Tags } from './shared';
import { count, failureWords } from './words';

export const VERDICTS: Record<Verdict, { tone: Tone; icon: IconName; label: string }> = {
  unchanged: { tone: 'ok', icon: 'check-circle', label: 'Unchanged' },
  changed: { tone: 'info', icon: 'edit', label: 'Changed' },
  fails: { tone: 'bad', icon: 'cross-circle', label: 'Failing' },
  unknown: { tone: 'warn', icon: 'help', label: 'Unknown' },
};

type Change = Summary['changes'][number];

const SUMMARY: Column<Change>[] = [
  { key: 'change', title: 'Change', cell: ({ change }) => <ChangeWord change={change} /> },
  { key: 'what', title: 'What', cell: ({ kind, path }) => <><strong>{kind}</strong> {path ? <code>{path}</code> : <span class="muted">the whole object</span>}</>, sort: (one, other) => `${one.kind} ${one.path}`.localeCompare(`${other.kind} ${other.path}`) },
  { key: 'count', title: 'Times', cell: (one) => <span class="num">{one.count.toLocaleString('en')}</span>, sort: (one, other) => one.count - other.count, end: true },
  { key: 'example', title: 'Such as', cell: ({ example }) => <span class="muted">{example.namespace && `${example.namespace}/`}{example.name}</span>, priority: 3 },
];

/** A tile that counts roots of a verdict, and shows them alone when it is pressed. */
function Tile({ verdict, value, pressed, onPress }: { verdict: Verdict; value: number; pressed: boolean; onPress: () => void }) {
  const { tone, icon, label } = VERDICTS[verdict];
  const isQuiet = verdict === 'unchanged' || value === 0;
  return <Count name={label} value={value} icon={icon} tone={tone} valueTone={isQuiet ? null : tone} pressed={pressed} onPress={isQuiet ? undefined : onPress} />;
}

function Planned({ root }: { root: PlannedRoot }) {
  const { failure, unknown, standingRefusals, children, patches, evictions, status, note, failsNow } = root;
  const page = rootHref(root.root.apiVersion, root.root.kind, root.root.namespace, root.root.name);
  return (
    <div class="stack planned">
      {failure && (
        <Notice tone="bad" title={failure.reason}>
          {failureWords(failure)}
          {failsNow !== null && <div class="muted">{failsNow ? 'It fails with what is in force, too.' : 'With what is in force it does not fail.'}</div>}
        </Notice>
      )}
      {unknown.length > 0 && <Notice tone="warn" title="It cannot be told"><ul>{unknown.map(({ what, why }) => <li key={what}>{what}: {why}</li>)}</ul></Notice>}
      {standingRefusals.length > 0 && <Notice tone="warn" title="The API server refuses some of it now"><ul>{standingRefusals.map(({ reason, message }) => <li key={message}>{reason}: {message}</li>)}</ul></Notice>}
      {note && <p class="muted">{note}</p>}
      {children.length > 0 && <ChildChanges items={children} />}
      {patches.length > 0 && <ChildChanges items={patches} what="patch" />}
      {evictions.length > 0 && <p>Evicts {count(evictions.length, 'Pod')}: {evictions.map(({ name }) => name).join(', ')}</p>}
      {status && status.changes.length > 0 && (
        <div>
          <h3>Status of the root</h3>
          <Fields fields={status.changes} />
        </div>
      )}
      {page && <p><a href={page}>Open {root.root.name}</a></p>}
    </div>
  );
}

const DONE: Record<string, string> = { create: 'created', update: 'updated', delete: 'deleted', adopt: 'taken over', conflict: 'in conflict' };

/** What of a root's children would change, in a few words. */
function gist({ verdict, failure, unknown, children, patches }: PlannedRoot): string {
  if (failure) return failureWords(failure);
  if (verdict === 'unknown') return unknown[0] ? `${unknown[0].what}: ${unknown[0].why}` : '';
  const counts = new Map<string, number>();
  for (const { change } of [...children, ...patches]) if (change !== 'unchanged') counts.set(change, (counts.get(change) ?? 0) + 1);
  return [...counts].map(([change, many]) => `${many} ${DONE[change] ?? change}`).join(', ') || 'its status';
}

function Item({ planned, isOpen, onToggle }: { planned: PlannedRoot; isOpen: boolean; onToggle: () => void }) {
  const { root } = planned;
  const { tone, icon, label } = VERDICTS[verdictOf(planned)];
  return (
    <li>
      <button type="button" class="row verdict" aria-expanded={isOpen} onClick={onToggle}>
        <Icon name={isOpen ? 'chevron' : 'chevron-right'} />
        <span class="name">{root.namespace && <span class="muted">{root.namespace}/</span>}{root.name}</span>
        <Status tone={tone} icon={icon} label={label} />
        <span class="gist muted">{gist(planned)}</span>
      </button>
      {isOpen && <Planned root={planned} />}
    </li>
  );
}

const PAGE = 50;

function RootList({ roots, verdict }: { roots: readonly PlannedRoot[]; verdict: Verdict | 'all' }) {
  const [search, setSearch] = useState('');
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [most, setMost] = useState(PAGE);
  const shown = useMemo(() => shownRoots(roots, verdict, search), [roots, verdict, search]);
  const toggle = (key: string) => {
    const next = new Set(open);
    if (!next.delete(key)) next.add(key);
    setOpen(next);
  };
  return (
    <div class="stack tight">
      <SearchInput value={search} onInput={setSearch} label="Filter by name" />
      {shown.length === 0 ? <Empty title="Nothing fits" icon="search" /> : (
        <ul class="plain foldable card flush" role="list" aria-label="Roots">
          {shown.slice(0, most).map((planned) => <Item key={planned.root.uid ?? planned.root.name} planned={planned} isOpen={open.has(planned.root.uid ?? planned.root.name)} onToggle={() => toggle(planned.root.uid ?? planned.root.name)} />)}
        </ul>
      )}
      {shown.length > most && <Button onClick={() => setMost(most + PAGE)}>Show {Math.min(PAGE, shown.length - most)} more of {count(shown.length, 'root')}</Button>}
    </div>
  );
}

function NewRights({ summary, name }: { summary: Summary; name: string }) {
  const rights = summary.newKinds.filter(({ missing, granted }) => missing === null || missing.length > 0 || !granted);
  if (rights.length === 0) return null;
  return (
    <Section title="New rights that it needs" beside={<span class="muted">{rights.length}</span>}>
      <Notice tone="warn">
        <ul class="plain differences" role="list">
          {rights.map(({ apiVersion, kind, verbs, missing, granted }) => (
            <li key={`${apiVersion} ${kind}`}>
              <span>
                <strong>{kind}</strong> <span class="muted">({apiVersion})</span>
                {missing === null && ' · not known whether the host has these'}
                {missing !== null && missing.length > 0 && ' · the host lacks these'}
                {!granted && <span class="tone-warn"> · not in spec.grants</span>}
              </span>
              <Tags items={missing ?? verbs} empty="" />
            </li>
          ))}
        </ul>
        {summary.roleCommand && <>Apply the role first: <CopyText text={summary.roleCommand} what="command" /></>}
      </Notice>
      <span class="sr-only">for {name}</span>
    </Section>
  );
}

export function PlanResult({ state, name }: { state: PlanState; name: string }) {
  const [verdict, setVerdict] = useState<Verdict | 'all'>('all');
  const counts = countsOf(state);
  const { summary, roots } = state;
  const rest = summary ? summary.roots.total - summary.roots.unchanged : roots.length;
  return (
    <>
      <div class="verdicts" role="group" aria-label="Roots by verdict">
        {(['unchanged', 'changed', 'fails', 'unknown'] as const).map((one) => <Tile key={one} verdict={one} value={counts[one]} pressed={verdict === one} onPress={() => setVerdict(verdict === one ? 'all' : one)} />)}
      </div>
      {summary && rest === 0 && <Notice tone="ok" title="Nothing would change">Every one of {count(summary.roots.total, 'root')} gets the same answer, and its children are as that answer wants them.</Notice>}
      {summary && <NewRights summary={summary} name={name} />}
      {summary && summary.changes.length > 0 && (
        <Section title="What changes" beside={<span class="muted small">in {summary.seconds.toFixed(summary.seconds < 10 ? 1 : 0)} s</span>}>
          <Table label="What changes, by kind and field" rows={summary.changes} columns={SUMMARY} rowKey={({ kind, path, change }) => `${kind} ${path} ${change}`} initial={{ key: 'count', down: true }} />
        </Section>
      )}
      {roots.length > 0 && (
        <Section title={verdict === 'all' ? 'Roots to look at' : `${VERDICTS[verdict].label} roots`} beside={<span class="muted num">{verdict === 'all' ? rest.toLocaleString('en') : counts[verdict].toLocaleString('en')}</span>}>
          {summary?.limits.truncated && <Notice tone="info">The first {roots.length.toLocaleString('en')} are listed; the counts are of all.</Notice>}
          <RootList roots={roots} verdict={verdict} />
        </Section>
      )}
    </>
  );
}
