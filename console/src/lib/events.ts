// The Events of Pintle and of roots, newest first, as they happen.
import { signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { ClusterEvent } from '../api/generated';
import type { KindPath } from '../api/objects';
import type { Problem } from './api';
import { EVENTS, type Query } from './hub';
import { useRead } from './read';
import { common, type Live, takeState } from './store';
import { listen } from './stream';

export interface Events extends Omit<Live, 'retain'> {
  /** undefined while they are not known. */
  events: ReadonlySignal<ClusterEvent[] | undefined>;
}

/** Events, for as long as the component is there: of one namespace, or of all. */
export function useEvents({ namespace }: { namespace?: string | undefined } = {}): Events {
  const made = useMemo(() => ({ events: signal<ClusterEvent[] | undefined>(undefined), ...common() }), [namespace]);
  useEffect(() => {
    const query: Query = { ...EVENTS, ...(namespace ? { namespace } : {}) };
    return listen(query, (told) => {
      if (told.type === 'events') made.events.value = told.events;
      if (told.type === 'state') takeState(made, told);
    });
  }, [made]);
  return made;
}

/** More Events of one object nobody reads. */
const MOST = 200;

export interface ObjectEvents {
  /** undefined while they are not known. */
  events: ClusterEvent[] | undefined;
  problem: Problem | null;
  again: () => void;
}

/** The Events about one object: those that are there, and each as it comes. */
export function useObjectEvents(kind: KindPath & { kind: string }, namespace: string | null, name: string): ObjectEvents {
  const live = useEvents(namespace ? { namespace } : {}).events.value ?? [];
  const { value, problem, again } = useRead('listEventsOf', { ...kind, namespace, name }, { version: '' });
  const mine = live.filter(({ regarding }) => regarding.kind === kind.kind && regarding.name === name && (regarding.namespace ?? null) === namespace);
  if (!value && mine.length === 0) return { events: undefined, problem, again };
  const all = new Map([...(value?.items ?? []), ...mine].map((event) => [event.uid, event]));
  return { events: [...all.values()].sort((one, other) => (other.last ?? '').localeCompare(one.last ?? '')).slice(0, MOST), problem: null, again };
}
