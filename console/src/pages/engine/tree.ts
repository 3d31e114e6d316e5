// The children of a root as a tree: by kind, with how each kind is. Values in, values out.
import type { Child } from '../../api/generated';
import { isNamedBy } from './words';

export type ChildState = 'ready' | 'waiting' | 'deleting';

/** How a child is. */
export function stateOfChild({ deleting, ready }: Child): ChildState {
  if (deleting) return 'deleting';
  return ready.status === 'True' ? 'ready' : 'waiting';
}

export interface Branch {
  key: string;
  apiVersion: string;
  kind: string;
  children: Child[];
  waiting: number;
  /** The children that the root's condition names as what it waits for. */
  blocking: ReadonlySet<string>;
}

const RANKS: Record<ChildState, number> = { waiting: 0, deleting: 1, ready: 2 };

/** The children by kind: what blocks first, then what is not ready, then by name. */
export function branches(children: readonly Child[], blocker: string): Branch[] {
  const found = new Map<string, Branch & { blocking: Set<string> }>();
  for (const child of children) {
    const key = `${child.apiVersion} ${child.kind}`;
    let branch = found.get(key);
    if (!branch) {
      branch = { key, apiVersion: child.apiVersion, kind: child.kind, children: [], waiting: 0, blocking: new Set() };
      found.set(key, branch);
    }
    branch.children.push(child);
    const state = stateOfChild(child);
    if (state === 'waiting' || state === 'deleting') branch.waiting += 1;
    if (blocker !== '' && isNamedBy(blocker, child)) branch.blocking.add(child.uid);
  }
  for (const branch of found.values()) {
    const rank = (child: Child) => (branch.blocking.has(child.uid) ? -1 : RANKS[stateOfChild(child)]);
    branch.children.sort((one, other) => rank(one) - rank(other) || one.name.localeCompare(other.name));
  }
  const rank = ({ blocking, waiting }: Branch) => (blocking.size > 0 ? 0 : waiting > 0 ? 1 : 2);
  return [...found.values()].sort((one, other) => rank(one) - rank(other) || one.kind.localeCompare(other.kind));
}
