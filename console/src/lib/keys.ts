// Everything that can be done from the keyboard, once: what handles keys, the help and the palette all read it.
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { keep, kept } from './kept';

export interface Action {
  id: string;
  title: string;
  /** A key, such as `/`; none for what only the palette offers. */
  key?: string | undefined;
  group: string;
  run: () => void;
  /** More words to find it by. */
  words?: string | undefined;
  /** Stands in the palette? What only makes sense as a key does not. */
  isHidden?: boolean | undefined;
}

export const actions = signal<Action[]>([]);

const SWITCH = 'pintle-single-keys';

/** Whether keys without Ctrl or Cmd do anything (WCAG 2.1.4). */
export const singleKeys = signal(kept(SWITCH) !== 'off');

export function setSingleKeys(on: boolean): void {
  singleKeys.value = on;
  keep(SWITCH, on ? 'on' : 'off');
}

interface Given extends Action {
  /** Whether it can be done now. */
  when?: boolean | undefined;
}

/** Registers an action for as long as the component is there. */
export function useAction({ id, title, key, group, run, words, isHidden, when = true }: Given): void {
  const latest = useRef(run);
  latest.current = run;
  // With what is drawn, and not after it is painted: what somebody sees, its keys work on.
  useLayoutEffect(() => {
    if (!when) return;
    const action: Action = { id, title, key, group, words, isHidden, run: () => latest.current() };
    actions.value = [...actions.value, action];
    return () => {
      actions.value = actions.value.filter((one) => one !== action);
    };
  }, [id, title, key, group, words, isHidden, when]);
}

/** Whether somebody is typing where the key went. */
function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest('input, textarea, select, [contenteditable], [role="textbox"], [role="listbox"], [role="combobox"]') !== null;
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.repeat) return;
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') {
    const palette = actions.value.find(({ id }) => id === 'palette');
    if (!palette) return;
    event.preventDefault();
    if (document.querySelector('dialog[open]')) return;
    palette.run();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !singleKeys.value) return;
  if (isTyping(event) || document.querySelector('dialog[open]')) return;
  const action = actions.value.findLast(({ key }) => key === event.key);
  if (!action) return;
  event.preventDefault();
  action.run();
}

export function startKeys(): void {
  addEventListener('keydown', onKey);
}

/** Puts the cursor into the search of the page; opens the palette where it has none. */
export function search(): void {
  const field = document.querySelector<HTMLInputElement>('main input[type="search"], main [data-search]');
  if (field) {
    field.focus();
    field.select();
  } else {
    actions.value.find(({ id }) => id === 'palette')?.run();
  }
}

/** j and k: into the first table, when the focus is in none. Within a table the table itself moves. Where there is no such table, to the first
 * link of the next entry of a list. */
export function step(down: boolean): void {
  const seen = (selector: string) => [...document.querySelectorAll<HTMLElement>(selector)].filter((found) => found.offsetParent !== null);
  const rows = seen('main tbody > tr[tabindex]');
  if (rows.length > 0) return (rows.find((row) => row.tabIndex === 0) ?? rows[0])?.focus();
  const entries = seen('main tbody > tr, main [role="list"] > *').filter((entry) => entry.querySelector('a') && !entry.parentElement?.closest('[role="list"] > *'));
  const at = entries.findIndex((entry) => entry.contains(document.activeElement));
  entries[at < 0 ? 0 : Math.max(0, Math.min(entries.length - 1, at + (down ? 1 : -1)))]?.querySelector('a')?.focus();
}
