// All that is live, once for all tabs: the lists, the one stream that keeps them up to date, and the token that both are asked with. It runs
// in a SharedWorker; where there is none, in the page itself.
import { type EventsOf, pathOf } from '../api/call';
import type { ClusterEvent, Page, Row } from '../api/generated';
import type { KindPath } from '../api/objects';
import { type Problem, problemOf } from './api';
import { delay } from './backoff';
import type { K8sObject } from './kubernetes';
import { Changes, mergeRows, rowKey } from './merge';
import { type Message, readEvents } from './sse';

/** What a page wants to be kept told of: the rows of a kind, one whole object, or the children of a root. */
export interface Query extends KindPath {
  namespace?: string;
  name?: string;
  fields?: string[];
  /** The uid of a root: its children of this kind, which may be any, and of them no more than that they changed. */
  root?: string;
  /** The version from which on changes are told, where somebody has listed them already. */
  from?: string;
}

export type WatchState = 'loading' | 'live' | 'stale' | 'failed';

/** How the stream is. `waiting`: the host, or the API server behind it, does not answer; it is tried again, at `retryAt` if that is known. */
export interface StreamState {
  state: 'idle' | 'opening' | 'open' | 'waiting' | 'hidden' | 'signed-out';
  problem: Problem | null;
  retryAt: number | null;
}

export type ToHub =
  | { type: 'hello'; token: string | null; hidden: boolean }
  | { type: 'token'; token: string | null }
  | { type: 'hidden'; hidden: boolean }
  | { type: 'want'; id: number; query: Query }
  | { type: 'drop'; id: number }
  | { type: 'retry' }
  | { type: 'gone' };

export type ToPage =
  | { type: 'token'; token: string | null }
  | { type: 'stream'; stream: StreamState }
  | { type: 'unauthorized'; problem: Problem; token: string | null }
  | { type: 'rows'; id: number; rows: Row[]; first: boolean }
  | { type: 'changes'; id: number; put: Row[]; gone: string[] }
  | { type: 'object'; id: number; object: K8sObject | null }
  | { type: 'events'; id: number; events: ClusterEvent[] }
  | { type: 'state'; id: number; state: WatchState; problem: Problem | null; since: number | null };

export interface Client {
  post(message: ToHub): void;
}

/** What the hub uses of the world; tests bring their own. */
export interface World {
  fetch(path: string, token: string | null, signal: AbortSignal): Promise<Response>;
  now(): number;
  random(): number;
}

/** The Events of the cluster. They are not listed: the stream begins with those that are there. */
export const EVENTS: KindPath = { group: 'events.k8s.io', version: 'v1', plural: 'events' };

const PAGE = 500;
const MAX_EVENTS = 500;
const MAX_WATCHES = 32;
/** How long a watch is kept when nobody looks: somebody who goes back finds it as it was. */
const LINGER = 15_000;
/** How long all tabs are hidden before the stream is closed. */
const HIDDEN = 30_000;
/** After being closed for so long, lists are made anew instead of asking for all changes in between. */
const LIST_ANEW = 5 * 60_000;
const SILENCE = 45_000;

interface Watch {
  key: string;
  query: Query;
  rows: Row[];
  object: K8sObject | null;
  events: Map<string, ClusterEvent>;
  listed: boolean;
  /** Whether the stream has told of all that is there: of the one object, or that there is none; of all events. */
  seen: boolean;
  version: string | null;
  state: WatchState;
  problem: Problem | null;
  since: number | null;
  attempt: number;
  listing: AbortController | null;
  timer: ReturnType<typeof setTimeout> | null;
  unused: ReturnType<typeof setTimeout> | null;
  readers: Set<{ tell: (message: ToPage) => void; id: number }>;
}

interface Tab {
  tell: (message: ToPage) => void;
  hidden: boolean;
  wants: Map<number, { watch: Watch; reader: { tell: (message: ToPage) => void; id: number } }>;
}

/** A watch as the stream's query says it. */
export function watchParameter(query: Query, version: string | null): string {
  const parts = [`${query.group}/${query.version}/${query.plural}`];
  if (query.namespace) parts.push(`namespace=${query.namespace}`);
  if (query.name) parts.push(`name=${query.name}`, 'whole=true');
  if (query.root) parts.push(`root=${query.root}`);
  if (version) parts.push(`resourceVersion=${version}`);
  if (query.fields && query.fields.length > 0) parts.push(`fields=${query.fields.join(',')}`);
  return parts.join(';');
}

function listPath(query: Query, next: string | null): string {
  return pathOf('listObjects', { path: query, query: { limit: PAGE, namespace: query.namespace, fields: query.fields?.join(','), continue: next } });
}

function isPassing(problem: Problem): boolean {
  return problem.status === 0 || problem.status === 429 || problem.status === 408 || problem.status === 410 || problem.status >= 500;
}

function isEvents({ group, plural }: Query): boolean {
  return group === EVENTS.group && plural === EVENTS.plural;
}

/** Whether an Event is of Pintle, or about a custom resource: what the console shows. */
export function isOurs({ reporter, regarding }: ClusterEvent): boolean {
  const group = regarding.apiVersion.includes('/') ? (regarding.apiVersion.split('/')[0] ?? '') : '';
  return reporter.startsWith('pintle') || (group.includes('.') && !group.endsWith('.k8s.io'));
}

function newest(events: Map<string, ClusterEvent>): ClusterEvent[] {
  const time = ({ last, first }: ClusterEvent): string => last || first || '';
  return [...events.values()].sort((one, other) => (time(one) < time(other) ? 1 : time(one) > time(other) ? -1 : 0)).slice(0, MAX_EVENTS);
}

export class Hub {
  #world: World;
  #readProblem: (answer: Response) => Promise<Problem>;
  #tabs = new Set<Tab>();
  #watches = new Map<string, Watch>();
  #token: string | null = null;
  #stream: StreamState = { state: 'idle', problem: null, retryAt: null };
  #open: AbortController | null = null;
  #watched: Watch[] = [];
  #attempt = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  #hide: ReturnType<typeof setTimeout> | null = null;
  #closedAt = 0;
  #reopening = false;

  constructor(world: World, readProblem: (answer: Response) => Promise<Problem>) {
    this.#world = world;
    this.#readProblem = readProblem;
  }

  /** A tab that listens. */
  connect(tell: (message: ToPage) => void): Client {
    const tab: Tab = { tell, hidden: false, wants: new Map() };
    this.#tabs.add(tab);
    return { post: (message) => this.#on(tab, message) };
  }

  #on(tab: Tab, message: ToHub): void {
    switch (message.type) {
      case 'hello':
        this.#tabs.add(tab);
        tab.hidden = message.hidden;
        if (message.token) this.#setToken(message.token);
        else if (this.#token) tab.tell({ type: 'token', token: this.#token });
        tab.tell({ type: 'stream', stream: this.#stream });
        return this.#visibility();
      case 'token':
        return this.#setToken(message.token);
      case 'hidden':
        tab.hidden = message.hidden;
        return this.#visibility();
      case 'want':
        return this.#want(tab, message.id, message.query);
      case 'drop':
        return this.#drop(tab, message.id);
      case 'retry':
        return this.#retry();
      case 'gone':
        for (const id of [...tab.wants.keys()]) this.#drop(tab, id);
        this.#tabs.delete(tab);
        return this.#tabs.size > 0 ? this.#visibility() : this.#stop();
    }
  }

  /** Nobody is left: nothing is kept for somebody who might come back. */
  #stop(): void {
    for (const watch of [...this.#watches.values()]) this.#forget(watch);
    if (this.#hide) clearTimeout(this.#hide);
    this.#hide = null;
    if (this.#stream.state !== 'signed-out') this.#close({ state: 'idle', problem: null, retryAt: null });
  }

  #setToken(token: string | null): void {
    const isNew = token !== this.#token;
    this.#token = token;
    if (isNew) for (const tab of this.#tabs) tab.tell({ type: 'token', token });
    if (token === null) {
      this.#close({ state: 'signed-out', problem: null, retryAt: null });
      return;
    }
    if (isNew || this.#stream.state === 'signed-out') this.#restart();
  }

  /** Signed in anew, perhaps as somebody else: what was refused may be allowed now. */
  #restart(): void {
    if (this.#stream.state === 'signed-out') this.#setStream({ state: 'idle', problem: null, retryAt: null });
    this.#listUnlisted();
    this.#reopen();
  }

  #retry(): void {
    this.#attempt = 0;
    if (this.#stream.state !== 'open') return this.#restart();
    this.#listUnlisted();
  }

  #listUnlisted(): void {
    for (const watch of this.#watches.values()) if (!watch.listed && !watch.listing) this.#list(watch);
  }

  #want(tab: Tab, id: number, query: Query): void {
    const key = watchParameter(query, null);
    let watch = this.#watches.get(key);
    if (!watch) {
      watch = { key, query, rows: [], object: null, events: new Map(), listed: false, seen: false, version: null, state: 'loading', problem: null, since: null, attempt: 0, listing: null, timer: null, unused: null, readers: new Set() };
      this.#watches.set(key, watch);
    }
    if (watch.unused) clearTimeout(watch.unused);
    watch.unused = null;
    const reader = { tell: tab.tell, id };
    watch.readers.add(reader);
    tab.wants.set(id, { watch, reader });
    if (watch.rows.length > 0) tab.tell({ type: 'rows', id, rows: watch.rows, first: true });
    if (watch.seen) tab.tell(isEvents(query) ? { type: 'events', id, events: newest(watch.events) } : { type: 'object', id, object: watch.object });
    tab.tell({ type: 'state', id, state: watch.state, problem: watch.problem, since: watch.since });
    if (!watch.listed && !watch.listing && this.#stream.state !== 'signed-out') this.#list(watch);
  }

  #drop(tab: Tab, id: number): void {
    const want = tab.wants.get(id);
    if (!want) return;
    tab.wants.delete(id);
    const { watch, reader } = want;
    watch.readers.delete(reader);
    if (watch.readers.size > 0) return;
    watch.unused = setTimeout(() => this.#forget(watch), LINGER);
  }

  #forget(watch: Watch): void {
    watch.listing?.abort();
    if (watch.timer) clearTimeout(watch.timer);
    if (watch.unused) clearTimeout(watch.unused);
    this.#watches.delete(watch.key);
    if (this.#watched.includes(watch)) this.#reopen();
  }

  /** Reads the whole list, page by page; one object needs no list, since the stream begins with it. */
  #list(watch: Watch): void {
    watch.listing?.abort();
    if (watch.timer) clearTimeout(watch.timer);
    watch.timer = null;
    watch.version = null;
    watch.problem = null;
    if (watch.query.root) {
      // Once: where that version is too old, the stream begins with those that are there.
      const { from, ...query } = watch.query;
      watch.query = query;
      watch.version = from ?? null;
      watch.listed = true;
      return this.#reopen();
    }
    if (watch.query.name || isEvents(watch.query)) {
      watch.listed = true;
      watch.seen = false;
      this.#setState(watch, watch.object || watch.events.size > 0 ? 'stale' : 'loading');
      watch.events.clear();
      return this.#reopen();
    }
    watch.listed = false;
    this.#setState(watch, watch.rows.length > 0 ? 'stale' : 'loading');
    const listing = new AbortController();
    watch.listing = listing;
    void this.#readPages(watch, listing.signal).then(
      (problem) => {
        if (listing.signal.aborted) return;
        watch.listing = null;
        // Refused with a token that is no longer the present one: with that, nobody has asked yet.
        if (problem?.status === 401 && this.#stream.state !== 'signed-out') this.#list(watch);
        else if (problem) this.#failed(watch, problem);
        else this.#reopen();
      },
      () => undefined,
    );
  }

  async #readPages(watch: Watch, signal: AbortSignal): Promise<Problem | null> {
    let next: string | null = null;
    let first = true;
    const isFirst = watch.rows.length === 0;
    let version = '';
    let rows: Row[] = [];
    do {
      const token: string | null = this.#token;
      const answer: Response | null = await this.#world.fetch(listPath(watch.query, next), token, signal).catch(() => null);
      if (signal.aborted) return null;
      if (!answer) return GONE;
      if (!answer.ok) {
        const problem = await this.#readProblem(answer);
        if (problem.status === 401) this.#unauthorized(problem, token);
        return problem;
      }
      const page = (await answer.json().catch(() => null)) as Page | null;
      if (signal.aborted) return null;
      if (!page) return GONE;
      rows = mergeRows(rows, page.items, []);
      // The first list is shown as it comes; one that is made anew replaces the old one when it is whole, so that nothing flickers.
      if (isFirst || !page.continue) watch.rows = rows;
      if (isFirst) this.#tellRows(watch, page.items, first);
      else if (!page.continue) this.#tellRows(watch, rows, true);
      version = page.resourceVersion;
      next = page.continue;
      first = false;
    } while (next);
    watch.version = version;
    watch.listed = true;
    watch.attempt = 0;
    return null;
  }

  #tellRows(watch: Watch, rows: Row[], first: boolean): void {
    for (const { tell, id } of watch.readers) tell({ type: 'rows', id, rows, first });
  }

  #failed(watch: Watch, problem: Problem): void {
    watch.problem = problem;
    watch.version = null;
    watch.listed = false;
    if (problem.status === 401) return this.#setState(watch, watch.rows.length > 0 || watch.object ? 'stale' : 'loading');
    this.#setState(watch, 'failed');
    if (!isPassing(problem)) return;
    watch.timer = setTimeout(() => this.#list(watch), delay(watch.attempt, this.#world.random(), (problem.retryAfter ?? 0) * 1000));
    watch.attempt += 1;
  }

  /** The stream does not go on with a watch. Where that passes, the host tries again. */
  #stopped(watch: Watch, problem: Problem): void {
    if (!isPassing(problem)) return this.#failed(watch, problem);
    watch.problem = problem;
    this.#setState(watch, watch.state === 'live' || watch.state === 'stale' ? 'stale' : 'failed');
  }

  #setState(watch: Watch, state: WatchState): void {
    if (watch.state === 'live' && state !== 'live') watch.since = this.#world.now();
    if (state === 'live') Object.assign(watch, { since: null, problem: null });
    watch.state = state;
    for (const { tell, id } of watch.readers) tell({ type: 'state', id, state, problem: watch.problem, since: watch.since });
  }

  #setStream(stream: StreamState): void {
    this.#stream = stream;
    for (const tab of this.#tabs) tab.tell({ type: 'stream', stream });
  }

  #visibility(): void {
    const isSeen = [...this.#tabs].some((tab) => !tab.hidden);
    if (!isSeen) {
      this.#hide ??= setTimeout(() => {
        this.#hide = null;
        if (this.#stream.state !== 'signed-out') this.#close({ state: 'hidden', problem: null, retryAt: null });
      }, HIDDEN);
      return;
    }
    if (this.#hide) clearTimeout(this.#hide);
    this.#hide = null;
    if (this.#stream.state !== 'hidden') return;
    this.#setStream({ state: 'idle', problem: null, retryAt: null });
    if (this.#world.now() - this.#closedAt > LIST_ANEW) for (const watch of this.#watches.values()) this.#list(watch);
    this.#attempt = 0;
    this.#reopen();
  }

  #close(stream: StreamState): void {
    this.#open?.abort();
    this.#open = null;
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    this.#closedAt = this.#world.now();
    this.#setStream(stream);
    for (const watch of this.#watches.values()) if (watch.state === 'live') this.#setState(watch, 'stale');
  }

  #unauthorized(problem: Problem, token: string | null): void {
    if (token !== this.#token || this.#stream.state === 'signed-out') return;
    this.#close({ state: 'signed-out', problem, retryAt: null });
    for (const tab of this.#tabs) tab.tell({ type: 'unauthorized', problem, token });
  }

  /** Opens the stream anew, soon: what is wanted has changed, and it may change again at once. */
  #reopen(): void {
    if (this.#reopening || this.#stream.state === 'signed-out' || this.#stream.state === 'hidden') return;
    this.#reopening = true;
    setTimeout(() => {
      this.#reopening = false;
      if (this.#stream.state === 'signed-out' || this.#stream.state === 'hidden') return;
      if (this.#timer) clearTimeout(this.#timer);
      this.#timer = null;
      this.#open?.abort();
      this.#open = null;
      void this.#read();
    }, 5);
  }

  /** The watches that a stream can carry; those that somebody looks at come first. The others say so, and are read anew once there is room. */
  #wanted(): Watch[] {
    const all = [...this.#watches.values()];
    const isUnused = ({ readers }: Watch) => Number(readers.size === 0);
    const wanted = all.filter(({ listed }) => listed).sort((one, other) => isUnused(one) - isUnused(other));
    const waiting = all.filter(({ problem }) => problem === FULL);
    for (const watch of wanted.splice(MAX_WATCHES)) this.#failed(watch, FULL);
    for (const watch of waiting.slice(0, MAX_WATCHES - wanted.length)) this.#list(watch);
    return wanted;
  }

  async #read(): Promise<void> {
    const watches = this.#wanted();
    this.#watched = watches;
    if (watches.length === 0) return this.#setStream({ state: 'idle', problem: null, retryAt: null });
    const open = new AbortController();
    this.#open = open;
    if (this.#stream.state !== 'open') this.#setStream({ state: 'opening', problem: null, retryAt: null });
    const token = this.#token;
    let problem: Problem | null = null;
    let said: string | null = null;
    try {
      const answer = await this.#world.fetch(pathOf('stream', { query: { watch: watches.map((watch) => watchParameter(watch.query, watch.version)) } }), token, open.signal);
      if (!answer.ok || !answer.body) {
        problem = await this.#readProblem(answer);
      } else {
        for await (const messages of readEvents(answer.body, SILENCE)) {
          if (open.signal.aborted) return;
          if (messages.length > 0) this.#attempt = 0;
          said = this.#messages(watches, messages) ?? said;
        }
      }
    } catch {
      problem = GONE;
    }
    if (open.signal.aborted) return;
    this.#open = null;
    if (problem?.status === 401) return this.#unauthorized(problem, token);
    if (said === 'expired' || said === 'unauthorized') {
      return this.#unauthorized(problemOf(401, 'Signed out', said === 'expired' ? 'The token has expired.' : 'The cluster no longer accepts this login.'), token);
    }
    if (said === 'renew') return this.#reopen();
    const wait = delay(this.#attempt, this.#world.random(), (problem?.retryAfter ?? 0) * 1000);
    this.#attempt += 1;
    this.#close({ state: 'waiting', problem, retryAt: this.#world.now() + wait });
    this.#timer = setTimeout(() => this.#reopen(), wait);
  }

  /** Takes in what the stream said; why it will end, if it said so. */
  #messages(watches: Watch[], messages: Message[]): string | null {
    const changed = new Map<Watch, Changes>();
    const told = new Set<Watch>();
    let bye: string | null = null;
    for (const { event, data } of messages) {
      const said = parse(data);
      if (!said) continue;
      if (event === 'bye') {
        bye = said.reason ?? 'stopping';
        continue;
      }
      const watch = watches[said.watch ?? -1];
      if (!watch || !this.#watches.has(watch.key)) continue;
      if (event === 'reset') this.#list(watch);
      else if (event === 'problem' && said.problem) this.#stopped(watch, said.problem);
      else if (isEvents(watch.query)) told.add(this.#clusterEvent(watch, event, said));
      else this.#event(watch, event, said, changed);
    }
    for (const watch of told) {
      if (!watch.seen) continue;
      const events = newest(watch.events);
      watch.events = new Map(events.map((event) => [event.uid, event]));
      for (const { tell, id } of watch.readers) tell({ type: 'events', id, events });
    }
    for (const [watch, changes] of changed) {
      const { put, gone } = changes.take();
      watch.rows = mergeRows(watch.rows, put, gone);
      for (const { tell, id } of watch.readers) tell({ type: 'changes', id, put, gone });
    }
    // The host is there, but where no watch goes on there is nothing that it could tell of.
    const stopped = watches.some(({ state }) => state === 'live') ? undefined : watches.find(({ listed, problem }) => listed && problem);
    const state = stopped ? 'waiting' : 'open';
    if (messages.length > 0 && state !== this.#stream.state) this.#setStream({ state, problem: stopped?.problem ?? null, retryAt: null });
    return bye;
  }

  #event(watch: Watch, event: string | undefined, said: Said, changed: Map<Watch, Changes>): void {
    // A watch that is being listed anew takes nothing from the stream before.
    if (!watch.listed) return;
    if (said.resourceVersion) watch.version = said.resourceVersion;
    if (watch.query.name) {
      // A stream without a version begins with the object, if there is one, and then a bookmark.
      if (event === 'bookmark') {
        if (!watch.seen) this.#object(watch, null);
      } else if (event === 'deleted') this.#object(watch, null);
      else if (said.object) this.#object(watch, said.object as unknown as K8sObject);
      watch.seen = true;
      if (watch.state !== 'live') this.#setState(watch, 'live');
      return;
    }
    if (event !== 'bookmark') {
      const row = said.row as Row | undefined;
      if (!row) return;
      const changes = changed.get(watch) ?? new Changes();
      changed.set(watch, changes);
      if (event === 'deleted') changes.gone(rowKey(row));
      else changes.put(row);
    }
    if (watch.state !== 'live') this.#setState(watch, 'live');
  }

  #clusterEvent(watch: Watch, event: string | undefined, said: Said): Watch {
    if (said.resourceVersion) watch.version = said.resourceVersion;
    const one = said.row as ClusterEvent | undefined;
    if (event === 'bookmark') watch.seen = true;
    else if (one && event === 'deleted') watch.events.delete(one.uid);
    else if (one && isOurs(one)) watch.events.set(one.uid, one);
    if (watch.seen && watch.state !== 'live') this.#setState(watch, 'live');
    return watch;
  }

  #object(watch: Watch, object: K8sObject | null): void {
    watch.object = object;
    for (const { tell, id } of watch.readers) tell({ type: 'object', id, object });
  }
}

type Told = EventsOf<'stream'>;

/** What any of the stream's events may say. */
type Said = Partial<Told['added'] & Told['bookmark'] & Told['problem'] & Told['bye']>;

function parse(data: string): Said | null {
  try {
    const said: unknown = JSON.parse(data);
    return typeof said === 'object' && said !== null ? said : null;
  } catch {
    return null;
  }
}

const FULL = problemOf(413, 'Not followed', `A browser follows ${MAX_WATCHES} lists and objects at a time, on all of its pages together. What is shown of this one may be out of date.`);

const GONE = problemOf(0, 'The host does not answer', 'The connection to the host failed.');
