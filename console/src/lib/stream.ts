// The page's side of the hub: in the SharedWorker that all tabs share, or, where there is none, in this page.
import { signal } from '@preact/signals';
import { type Problem, readProblem } from './api';
import { Hub, type Client, type Query, type StreamState, type ToHub, type ToPage } from './hub';
import { world } from './world';

/** What a reader of one query is told. */
export type Told = Extract<ToPage, { id: number }>;

export const stream = signal<StreamState>({ state: 'idle', problem: null, retryAt: null });

interface Listener {
  query: Query;
  hear: (told: Told) => void;
}

/** What the session wants to hear of. */
interface SessionHooks {
  token: () => string | null;
  onToken: (token: string | null) => void;
  onUnauthorized: (problem: Problem, token: string | null) => void;
}

const listeners = new Map<number, Listener>();
let hooks: SessionHooks = { token: () => null, onToken: () => undefined, onUnauthorized: () => undefined };
let client: Client | null = null;
let last = 0;

function hear(message: ToPage): void {
  switch (message.type) {
    case 'token':
      return hooks.onToken(message.token);
    case 'unauthorized':
      return hooks.onUnauthorized(message.problem, message.token);
    case 'stream':
      stream.value = message.stream;
      return;
    default:
      listeners.get(message.id)?.hear(message);
  }
}

/** The one policy that the page's Content-Security-Policy allows; it knows a single address. */
function workerUrl(path: string): string {
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: { createScriptURL: (url: string) => string }): { createScriptURL(url: string): unknown } } }).trustedTypes;
  if (!types) return path;
  const policy = types.createPolicy('pintle-worker', {
    createScriptURL(url) {
      if (url !== path || !/^\/console\/assets\/([0-9a-f]+\/)?worker\.js$/.test(url)) throw new TypeError('no worker of the console');
      return url;
    },
  });
  return policy.createScriptURL(path) as string;
}

function shared(): Client | null {
  const path = document.querySelector<HTMLMetaElement>('meta[name="pintle-worker"]')?.content;
  if (!path || typeof SharedWorker === 'undefined') return null;
  try {
    const worker = new SharedWorker(workerUrl(path), { type: 'module', name: 'pintle' });
    const { port } = worker;
    let answered = false;
    port.onmessage = ({ data }: MessageEvent<ToPage>) => {
      answered = true;
      hear(data);
    };
    worker.onerror = () => {
      if (!answered) use(new Hub(world, readProblem).connect(hear));
    };
    const lock = `pintle-tab-${crypto.randomUUID?.() ?? Math.random()}`;
    void navigator.locks?.request(lock, () => new Promise(() => undefined));
    port.postMessage({ type: 'alive', lock });
    return { post: (message) => port.postMessage(message) };
  } catch {
    return null;
  }
}

function use(given: Client): void {
  client = given;
  client.post({ type: 'hello', token: hooks.token(), hidden: document.hidden });
  for (const [id, { query }] of listeners) client.post({ type: 'want', id, query });
}

/** Starts to listen; once a page. */
export function startStream(given: SessionHooks): void {
  hooks = given;
  use(shared() ?? new Hub(world, readProblem).connect(hear));
  document.addEventListener('visibilitychange', () => post({ type: 'hidden', hidden: document.hidden }));
  addEventListener('online', () => post({ type: 'retry' }));
  addEventListener('pagehide', () => post({ type: 'gone' }));
  addEventListener('pageshow', (event) => {
    if (event.persisted && client) use(client);
  });
}

export function post(message: ToHub): void {
  client?.post(message);
}

/** Asks for what a query finds, and for all that changes of it; the answer ends that. */
export function listen(query: Query, tell: (told: Told) => void): () => void {
  last += 1;
  const id = last;
  listeners.set(id, { query, hear: tell });
  post({ type: 'want', id, query });
  return () => {
    listeners.delete(id);
    post({ type: 'drop', id });
  };
}
