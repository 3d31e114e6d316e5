// The Events of Pintle and of roots, newest first, as they happen.
import { signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { ClusterEvent } from '../api/generated';
import type { Problem } from './api';
import { EVENTS, type Query, type WatchState } from './hub';
import { listen } from './stream';

export interface Events {
  /** undefined while they are not known. */
  events: ReadonlySignal<ClusterEvent[] | undefined>;
  state: ReadonlySignal<WatchState>;
  problem: ReadonlySignal<Problem | null>;
}

/** Events, for as long as the component is there: of one namespace, or of all. */
export function useEvents({ namespace }: { namespace?: string | undefined } = {}): Events {
  const made = useMemo(() => ({ events: signal<ClusterEvent[] | undefined>(undefined), state: signal<WatchState>('loading'), problem: signal<Problem | null>(null) }), [namespace]);
  useEffect(() => {
    const query: Query = { ...EVENTS, ...(namespace ? { namespace } : {}) };
    return listen(query, (told) => {
      if (told.type === 'events') made.events.value = told.events;
      if (told.type !== 'state') return;
      made.state.value = told.state;
      made.problem.value = told.problem;
    });
  }, [made]);
  return made;
}
