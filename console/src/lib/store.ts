// Rows and objects that are kept up to date for as long as somebody looks at them, and a little longer.
import { signal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { pathOf } from '../api/call';
import type { Page, Row } from '../api/generated';
import type { KindPath } from '../api/objects';
import { begins, takeAhead } from './ahead';
import type { Problem } from './api';
import { watchParameter, type Query, type WatchState } from './hub';
import type { K8sObject } from './kubernetes';
import { Changes, mergeRows } from './merge';
import { listen, type Told } from './stream';

export type { WatchState } from './hub';

export interface Live {
  state: ReadonlySignal<WatchState>;
  problem: ReadonlySignal<Problem | null>;
  /** Until when what is shown was up to date; null while it is. */
  since: ReadonlySignal<Date | null>;
  /** Keeps it up to date until what it gives back is called. */
  retain(): () => void;
}

export interface Rows extends Live {
  rows: ReadonlySignal<Row[]>;
}

export interface LiveObject extends Live {
  /** undefined while it is not known, null when there is none. */
  object: ReadonlySignal<K8sObject | null | undefined>;
}

/** How long a list that nobody looks at is kept: somebody who goes back finds it at once. */
const LINGER = 15_000;
/** Changes that come faster than the screen are taken together. */
const FRAME = 16;

export const common = () => ({ state: signal<WatchState>('loading'), problem: signal<Problem | null>(null), since: signal<Date | null>(null) });

export function takeState(to: ReturnType<typeof common>, told: Extract<Told, { type: 'state' }>): void {
  to.state.value = told.state;
  to.problem.value = told.problem;
  to.since.value = told.since === null ? null : new Date(told.since);
}

/** Listens while somebody retains it; tells `forget` when nobody has for a while. */
function retaining(query: Query, hear: (told: Told) => void, forget: () => void): () => () => void {
  let holders = 0;
  let stop: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    holders += 1;
    clearTimeout(timer);
    stop ??= listen(query, hear);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      holders -= 1;
      if (holders > 0) return;
      timer = setTimeout(() => {
        stop?.();
        stop = null;
        forget();
      }, LINGER);
    };
  };
}

const lists = new Map<string, Rows>();
const objects = new Map<string, LiveObject>();

export interface RowsOptions {
  namespace?: string | undefined;
  fields?: string[] | undefined;
  /** It is what its page shows first: the next visit begins with it. */
  ahead?: boolean | undefined;
}

function queryOf({ group, version, plural }: KindPath, options: RowsOptions): Query {
  const query: Query = { group, version, plural };
  if (options.namespace) query.namespace = options.namespace;
  if (options.fields && options.fields.length > 0) query.fields = [...options.fields].sort();
  return query;
}

/** How many rows are asked for ahead: more than a window shows. */
const AHEAD = 60;

/** The first rows of a list, if the head has asked for them; and the next visit of the page begins with asking for them. */
function rowsAhead(kind: KindPath, query: Query): Promise<Row[]> | undefined {
  const path = pathOf('listObjects', { path: kind, query: { limit: AHEAD, namespace: query.namespace, fields: query.fields?.join(',') } });
  // What is narrowed down may be further down in the list.
  if (location.search === '') begins(path);
  // Whatever goes wrong here goes wrong again where it is told.
  return takeAhead(path)?.then(async (answer) => (answer.ok ? ((await answer.json()) as Page).items : []), () => []);
}

/** The rows of a kind, live once retained. */
export function rows(kind: KindPath, options: RowsOptions = {}): Rows {
  const query = queryOf(kind, options);
  const key = watchParameter(query, null);
  const known = lists.get(key);
  if (known) return known;
  const shown = signal<Row[]>([]);
  const about = common();
  const pending = new Changes();
  let timer: ReturnType<typeof setTimeout> | null = null;
  let flushed = 0;
  const flush = (): void => {
    timer = null;
    flushed = performance.now();
    const { put, gone } = pending.take();
    shown.value = mergeRows(shown.value, put, gone);
  };
  const hear = (told: Told): void => {
    if (told.type === 'state') return takeState(about, told);
    if (told.type === 'rows') {
      if (told.first) pending.take();
      shown.value = told.first ? told.rows : mergeRows(shown.value, told.rows, []);
    }
    if (told.type !== 'changes') return;
    for (const row of told.put) pending.put(row);
    for (const key of told.gone) pending.gone(key);
    if (timer) return;
    if (performance.now() - flushed > FRAME) flush();
    else timer = setTimeout(flush, FRAME);
  };
  void (options.ahead ? rowsAhead(kind, query) : undefined)?.then((rows) => {
    if (about.state.value === 'loading' && shown.value.length === 0) shown.value = rows;
  });
  const made: Rows = { rows: shown, ...about, retain: retaining(query, hear, () => lists.delete(key)) };
  lists.set(key, made);
  return made;
}

/** One whole object, live once retained. */
export function object(kind: KindPath, namespace: string | null | undefined, name: string): LiveObject {
  const query: Query = { ...queryOf(kind, { namespace: namespace ?? undefined }), name };
  const key = watchParameter(query, null);
  const known = objects.get(key);
  if (known) return known;
  const shown = signal<K8sObject | null | undefined>(undefined);
  const about = common();
  const hear = (told: Told): void => {
    if (told.type === 'state') takeState(about, told);
    if (told.type === 'object') shown.value = told.object;
  };
  const made: LiveObject = { object: shown, ...about, retain: retaining(query, hear, () => objects.delete(key)) };
  objects.set(key, made);
  return made;
}

/** The rows of a kind, for as long as the component is there. */
export function useRows(kind: KindPath, options: RowsOptions = {}): Rows {
  const key = watchParameter(queryOf(kind, options), null);
  const found = useMemo(() => rows(kind, options), [key]);
  useEffect(() => found.retain(), [found]);
  return found;
}

/** The rows of several kinds at once, in a namespace where one is given and the kind has any, for as long as the component is there. */
export function useRowsOf<K extends KindPath & { namespaced: boolean }>(kinds: readonly K[], namespace: string): { kind: K; list: Rows }[] {
  const optionsOf = ({ namespaced }: K): RowsOptions => (namespaced && namespace !== '' ? { namespace } : {});
  const key = kinds.map((kind) => watchParameter(queryOf(kind, optionsOf(kind)), null)).join(' ');
  const lists = useMemo(() => kinds.map((kind) => ({ kind, list: rows(kind, optionsOf(kind)) })), [key]);
  useEffect(() => {
    const stops = lists.map(({ list }) => list.retain());
    return () => stops.forEach((stop) => stop());
  }, [lists]);
  return lists;
}

/** One object, for as long as the component is there. */
export function useObject(kind: KindPath, namespace: string | null | undefined, name: string): LiveObject {
  const found = useMemo(() => object(kind, namespace, name), [kind.group, kind.version, kind.plural, namespace, name]);
  useEffect(() => found.retain(), [found]);
  return found;
}

export const MODULES: KindPath = { group: 'pintle.dev', version: 'v1alpha1', plural: 'modules' };
export const RECONCILERS: KindPath = { group: 'pintle.dev', version: 'v1alpha1', plural: 'reconcilers' };
export const VIEWS: KindPath = { group: 'pintle.dev', version: 'v1alpha1', plural: 'views' };

/** What lists of Reconcilers show. The frame watches them with these, so that a page that asks for the same adds no watch. */
export const RECONCILER_FIELDS = ['spec.for.kind', 'spec.for.apiVersion', 'spec.module', 'status.active.module', 'status.active.since', 'status.candidate.module', 'status.roots.total', 'status.roots.ready', 'status.roots.failing'];
