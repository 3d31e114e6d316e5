// What the user may do, as the cluster says: which buttons work. Many questions of one page go as one request.
import { signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { call } from '../api/call';
import type { Check } from '../api/generated';
import { session } from './session';

const MOST = 64;
const LASTS = 60_000;

interface Known {
  allowed: Signal<boolean | undefined>;
  check: Check;
  at: number;
  isAsked: boolean;
}

const known = new Map<string, Known>();
let queue: Known[] = [];
let user: unknown = null;

function keyOf({ verb, group = '', resource, subresource, namespace, name }: Check): string {
  return [verb, group, resource, subresource ?? '', namespace ?? '', name ?? ''].join('|');
}

async function flush(): Promise<void> {
  const all = queue;
  queue = [];
  for (let from = 0; from < all.length; from += MOST) {
    const some = all.slice(from, from + MOST);
    try {
      const { allowed } = await call('can', { body: { checks: some.map(({ check }) => check) } });
      for (const [index, one] of some.entries()) {
        one.allowed.value = allowed[index];
        one.at = Date.now();
        one.isAsked = false;
      }
    } catch {
      // Not knowing is not a denial: it stays unknown, and is asked again when next somebody wants to know.
      for (const one of some) one.isAsked = false;
    }
  }
}

/** Whether the user may do something: undefined while nobody has said so. */
export function useCan(check: Check): ReadonlySignal<boolean | undefined> {
  const now = session.value;
  // What was asked before it was known who this is was asked as the same user.
  if (now && user && now !== user) for (const one of known.values()) one.at = 0;
  user = now ?? user;
  const key = keyOf(check);
  let found = known.get(key);
  if (!found) {
    found = { allowed: signal<boolean | undefined>(undefined), check, at: 0, isAsked: false };
    known.set(key, found);
  }
  if (!found.isAsked && Date.now() - found.at > LASTS) {
    found.isAsked = true;
    if (queue.length === 0) queueMicrotask(() => void flush());
    queue.push(found);
  }
  return found.allowed;
}
