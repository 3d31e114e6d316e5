// What belongs to an object and is not in it, such as its children: read anew whenever the object changes.
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { QueryOf } from '../api/call';
import { callObject, type ObjectAnswer, pathOfObject, type Place } from '../api/objects';
import { asProblem, type Problem } from './api';

export interface Read<T> {
  /** What was read last; it stays while it is read anew. */
  value: T | undefined;
  problem: Problem | null;
  at: Date | null;
  busy: boolean;
  again: () => void;
}

/** An object changes in bursts, and its children a moment later. */
const SETTLES = 400;

type Reading = 'listChildren' | 'listEventsOf' | 'inspect';

/** Reads what belongs to an object, and again when `version` changes. */
export function useRead<Id extends Reading>(id: Id, place: Place<Id>, { query, version }: { query?: QueryOf<Id>; version: string }): Read<ObjectAnswer<Id>> {
  const path = pathOfObject(id, place, query);
  const [state, setState] = useState<Omit<Read<ObjectAnswer<Id>>, 'again'>>({ value: undefined, problem: null, at: null, busy: false });
  const turn = useRef(0);
  const read = useRef<string | null>(null);
  const again = useCallback(() => {
    turn.current += 1;
    const mine = turn.current;
    const isOther = read.current !== path;
    read.current = path;
    setState((before) => (isOther ? { value: undefined, problem: null, at: null, busy: true } : { ...before, busy: true }));
    (callObject<Reading>(id, place, { query }) as Promise<ObjectAnswer<Id>>).then(
      (value) => mine === turn.current && setState({ value, problem: null, at: new Date(), busy: false }),
      (error: unknown) => mine === turn.current && setState((before) => ({ ...before, problem: asProblem(error), busy: false })),
    );
  }, [path]);
  useEffect(() => {
    if (read.current !== path) {
      again();
      return;
    }
    const timer = setTimeout(again, SETTLES);
    return () => clearTimeout(timer);
  }, [again, version]);
  useEffect(() => () => {
    turn.current += 1;
  }, []);
  return { ...state, again };
}
