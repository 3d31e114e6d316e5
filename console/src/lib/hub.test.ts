import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import type { Row } from '../api/generated';
import { readProblem } from './api';
import { type Client, Hub, type ToPage, type World } from './hub';

const KIND = { group: 'my.domain', version: 'v1', plural: 'webservers' };

const row = (name: string, resourceVersion = '1'): Row => ({
  namespace: 'a', name, uid: name, generation: 1, created: '', deleting: false, resourceVersion, labels: {}, stalled: false, reconciling: false, suspended: false, fields: {},
  ready: { status: null, reason: '', message: '', current: true, since: null },
});

interface Stream {
  path: string;
  token: string | null;
  watches: string[];
  say: (event: string, data: unknown) => void;
  end: () => void;
}

/** A host that lists `rows` and whose streams say what a test tells them to. */
class Host implements World {
  rows: Row[] = [];
  version = 10;
  lists: string[] = [];
  streams: Stream[] = [];
  /** Whether the API server does not answer it. */
  isAlone = false;
  refuse: ((path: string) => { status: number; body?: object } | null) | null = null;

  now = (): number => Date.now();
  random = (): number => 0;

  fetch = (path: string, token: string | null, signal: AbortSignal): Promise<Response> => {
    const refused = this.refuse?.(path);
    if (refused) return Promise.resolve(new Response(JSON.stringify(refused.body ?? {}), { status: refused.status }));
    const url = new URL(path, 'http://host');
    if (url.pathname !== '/api/v1/stream') {
      this.lists.push(path);
      const from = Number(url.searchParams.get('continue') ?? 0);
      const items = this.rows.slice(from, from + 2);
      const next = from + 2 < this.rows.length ? String(from + 2) : null;
      return Promise.resolve(Response.json({ resourceVersion: String(this.version), continue: next, remaining: null, items }));
    }
    let to: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({ start: (given) => { to = given; } });
    signal.addEventListener('abort', () => { try { to?.error(new Error('aborted')); } catch { /* It has ended. */ } });
    const stream: Stream = {
      path, token, watches: url.searchParams.getAll('watch'),
      say: (event, data) => to?.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)),
      end: () => to?.close(),
    };
    this.streams.push(stream);
    for (const [watch, asked] of stream.watches.entries()) {
      const resourceVersion = /resourceVersion=(\d+)/.exec(asked)?.[1];
      if (resourceVersion && !this.isAlone) stream.say('bookmark', { watch, resourceVersion });
    }
    return Promise.resolve(new Response(body));
  };
}

const clients: Client[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.post({ type: 'gone' });
});

function open(host: Host, hub = new Hub(host, readProblem)) {
  const heard: ToPage[] = [];
  const client = hub.connect((message) => heard.push(message));
  clients.push(client);
  client.post({ type: 'hello', token: null, hidden: false });
  const of = <T extends ToPage['type']>(type: T) => heard.filter((message): message is Extract<ToPage, { type: T }> => message.type === type);
  return { hub, client, heard, of };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 400; turn += 1) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail(`never: ${what}`);
}

test('a list is read page by page, and followed from the version it was read at', async () => {
  const host = new Host();
  host.rows = ['a', 'b', 'c'].map((name) => row(name));
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: KIND });
  await until('the stream is open', () => of('state').at(-1)?.state === 'live');
  assert.deepEqual(of('rows').map(({ rows, first }) => [rows.map(({ name }) => name).join(''), first]), [['ab', true], ['c', false]]);
  assert.deepEqual(host.streams[0]?.watches, ['my.domain/v1/webservers;resourceVersion=10']);
  host.streams[0]?.say('modified', { watch: 0, resourceVersion: '11', row: row('b', '11') });
  host.streams[0]?.say('deleted', { watch: 0, resourceVersion: '12', row: row('a', '12') });
  await until('both changes are told', () => of('changes').flatMap(({ put, gone }) => [...put, ...gone]).length === 2);
});

test('two tabs that look at the same share one list and one stream', async () => {
  const host = new Host();
  host.rows = [row('a')];
  const one = open(host);
  one.client.post({ type: 'want', id: 1, query: KIND });
  await until('the first is live', () => one.of('state').at(-1)?.state === 'live');
  const other = open(host, one.hub);
  other.client.post({ type: 'want', id: 7, query: KIND });
  assert.deepEqual(other.of('rows').map(({ id, rows }) => [id, rows.length]), [[7, 1]]);
  assert.equal(other.of('state').at(-1)?.state, 'live');
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.deepEqual([host.lists.length, host.streams.length], [1, 1]);
});

test('a stream that is renewed goes on from the last version, without a new list', async () => {
  const host = new Host();
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: KIND });
  await until('it is live', () => of('state').at(-1)?.state === 'live');
  host.streams[0]?.say('bookmark', { watch: 0, resourceVersion: '77' });
  host.streams[0]?.say('bye', { reason: 'renew' });
  host.streams[0]?.end();
  await until('it is open again', () => host.streams.length === 2);
  assert.deepEqual([host.streams[1]?.watches, host.lists.length], [['my.domain/v1/webservers;resourceVersion=77'], 1]);
});

test('a reset lists anew, and what has gone meanwhile goes', async () => {
  const host = new Host();
  host.rows = [row('a'), row('b')];
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: KIND });
  await until('it is live', () => of('state').at(-1)?.state === 'live');
  host.rows = [row('b')];
  host.version = 90;
  host.streams[0]?.say('reset', { watch: 0 });
  await until('it is open again', () => host.streams.length === 2);
  assert.deepEqual(of('rows').at(-1), { type: 'rows', id: 1, rows: [row('b')], first: true });
  assert.deepEqual(host.streams[1]?.watches, ['my.domain/v1/webservers;resourceVersion=90']);
});

test('a watch that is refused fails alone, and is not asked for again', async () => {
  const host = new Host();
  host.refuse = (path) => (path.includes('/webservers') && !path.includes('/stream') ? { status: 403, body: { title: 'Forbidden', status: 403, detail: 'jane may not' } } : null);
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: KIND });
  client.post({ type: 'want', id: 2, query: { ...KIND, plural: 'others' } });
  await until('the other is live', () => of('state').some(({ id, state }) => id === 2 && state === 'live'));
  const failed = of('state').filter(({ id }) => id === 1).at(-1);
  assert.deepEqual([failed?.state, failed?.problem?.detail], ['failed', 'jane may not']);
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(host.streams.length, 1);
});

test('a stream that breaks is tried again after a while, and says until when the rows are from', async () => {
  const host = new Host();
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: KIND });
  await until('it is live', () => of('state').at(-1)?.state === 'live');
  host.streams[0]?.end();
  await until('it waits', () => of('stream').at(-1)?.stream.state === 'waiting');
  assert.equal(of('state').at(-1)?.state, 'stale');
  assert.notEqual(of('state').at(-1)?.since, null);
  await until('it is open again', () => of('stream').at(-1)?.stream.state === 'open');
  assert.equal(of('state').at(-1)?.state, 'live');
});

test('while the API server does not answer the host, nothing is live though the stream is open; afterwards it goes on from where it was', async () => {
  const host = new Host();
  host.isAlone = true;
  const { client, of } = open(host);
  const state = (id: number) => of('state').filter((told) => told.id === id).at(-1)?.state;
  const stream = () => of('stream').at(-1)?.stream;
  client.post({ type: 'want', id: 1, query: KIND });
  client.post({ type: 'want', id: 2, query: { ...KIND, plural: 'others' } });
  await until('a stream of both', () => host.streams.at(-1)?.watches.length === 2);
  const say = (event: string, watch: number, data: object) => host.streams.at(-1)?.say(event, { watch, ...data });
  const problem = { title: 'Bad Gateway', status: 502, detail: 'the API server did not answer', details: '', causes: [] };
  assert.notEqual(stream()?.state, 'open');
  say('bookmark', 0, { resourceVersion: '11' });
  say('problem', 1, { problem });
  await until('the other goes on', () => state(2) === 'failed');
  assert.deepEqual([stream()?.state, state(1)], ['open', 'live']);
  say('problem', 0, { problem });
  await until('neither goes on', () => stream()?.state === 'waiting');
  assert.deepEqual([state(1), stream()?.problem?.detail], ['stale', 'the API server did not answer']);
  say('bookmark', 0, { resourceVersion: '11' });
  say('bookmark', 1, { resourceVersion: '10' });
  await until('both go on', () => state(2) === 'live');
  assert.deepEqual([stream()?.state, state(1), of('state').at(-1)?.problem], ['open', 'live', null]);
  assert.deepEqual([host.lists.length, host.streams.at(-1)?.watches[0]], [2, 'my.domain/v1/webservers;resourceVersion=10']);
});

test('what is beyond the watches of a stream is shown as it was read and says so, and is followed once there is room', async (context) => {
  const host = new Host();
  host.rows = [row('a')];
  const { client, of } = open(host);
  const last = (id: number) => of('state').filter((told) => told.id === id).at(-1);
  for (let id = 0; id < 34; id += 1) client.post({ type: 'want', id, query: { ...KIND, plural: `kind${id}`, ...(id === 33 ? { namespace: 'a', name: 'x' } : {}) } });
  await until('as many as there may be are followed', () => [0, 31].every((id) => last(id)?.state === 'live') && [32, 33].every((id) => last(id)?.state === 'failed'));
  assert.deepEqual([last(32)?.problem?.title, last(33)?.problem?.title, of('rows').some(({ id }) => id === 32)], ['Not followed', 'Not followed', true]);
  context.mock.timers.enable({ apis: ['setTimeout'] });
  client.post({ type: 'drop', id: 0 });
  context.mock.timers.tick(15_000);
  context.mock.timers.tick(5);
  context.mock.timers.reset();
  await until('the next is followed', () => last(32)?.state === 'live');
  assert.deepEqual([last(1)?.state, last(33)?.state], ['live', 'failed']);
});

test('an ended login is told once, and nothing is asked until there is a new one', async () => {
  const host = new Host();
  const one = open(host);
  one.client.post({ type: 'token', token: 'old' });
  one.client.post({ type: 'want', id: 1, query: KIND });
  await until('it is live', () => one.of('state').at(-1)?.state === 'live');
  let asked = 0;
  host.refuse = () => {
    asked += 1;
    return { status: 401, body: { title: 'Unauthorized', status: 401, detail: 'no' } };
  };
  host.streams[0]?.say('bye', { reason: 'expired' });
  host.streams[0]?.end();
  await until('it is told', () => one.of('unauthorized').length === 1);
  one.client.post({ type: 'want', id: 2, query: { ...KIND, plural: 'others' } });
  await new Promise((resolve) => setTimeout(resolve, 700));
  assert.deepEqual([one.of('unauthorized').length, asked], [1, 0]);
  host.refuse = null;
  one.client.post({ type: 'token', token: 'new' });
  await until('it is live again', () => one.of('state').filter(({ id }) => id === 2).at(-1)?.state === 'live');
  assert.equal(host.streams.at(-1)?.token, 'new');
});

test('a list that was refused with the token before is asked for with the new one', async () => {
  const host = new Host();
  const { client, of } = open(host);
  client.post({ type: 'token', token: 'old' });
  const waiting: ((answer: Response) => void)[] = [];
  const { fetch } = host;
  host.fetch = (path, token, signal) => (token === 'old' ? new Promise<Response>((resolve) => waiting.push(resolve)) : fetch(path, token, signal));
  client.post({ type: 'want', id: 1, query: KIND });
  client.post({ type: 'token', token: 'new' });
  waiting[0]?.(new Response('{"title":"Unauthorized","status":401}', { status: 401 }));
  await until('it is live', () => of('state').at(-1)?.state === 'live');
  assert.deepEqual([of('unauthorized').length, host.streams[0]?.token], [0, 'new']);
});

test('one object is told from the stream alone: that it is there, that it changes, that it is gone, that there is none', async () => {
  const host = new Host();
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: { ...KIND, namespace: 'a', name: 'x' } });
  await until('a stream', () => host.streams.length === 1);
  assert.deepEqual([host.streams[0]?.watches, host.lists.length], [['my.domain/v1/webservers;namespace=a;name=x;whole=true'], 0]);
  host.streams[0]?.say('bookmark', { watch: 0, resourceVersion: '5' });
  await until('there is none', () => of('object').at(-1)?.object === null);
  const object = { apiVersion: 'my.domain/v1', kind: 'WebServer', metadata: { name: 'x', namespace: 'a', uid: 'u', resourceVersion: '6', creationTimestamp: '' } };
  host.streams[0]?.say('added', { watch: 0, resourceVersion: '6', object });
  host.streams[0]?.say('bookmark', { watch: 0, resourceVersion: '7' });
  host.streams[0]?.say('deleted', { watch: 0, resourceVersion: '8', object });
  await until('it is gone', () => of('object').length === 3);
  assert.deepEqual(of('object').map(({ object }) => object?.metadata.name ?? null), [null, 'x', null]);
});

test('children of a root are followed from the version that somebody has listed them at, and from the present where that is too old', async () => {
  const host = new Host();
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: { group: '', version: 'v1', plural: 'secrets', namespace: 'a', root: 'u', from: '7' } });
  await until('a stream', () => host.streams.length === 1);
  assert.deepEqual([host.streams[0]?.watches, host.lists.length], [['/v1/secrets;namespace=a;root=u;resourceVersion=7'], 0]);
  host.streams[0]?.say('modified', { watch: 0, resourceVersion: '8', row: row('b', '8') });
  await until('it is told', () => of('changes').length === 1);
  host.streams[0]?.say('reset', { watch: 0 });
  await until('a stream from the present', () => host.streams.length === 2);
  assert.deepEqual(host.streams[1]?.watches, ['/v1/secrets;namespace=a;root=u']);
  host.streams[1]?.say('added', { watch: 0, resourceVersion: '9', row: row('b', '9') });
  await until('what is there is told as a change', () => of('changes').length === 2);
});

test('nobody looks: the stream is closed after a while, and goes on from where it was; after long, lists are made anew', async (context) => {
  const host = new Host();
  const { client, of } = open(host);
  client.post({ type: 'want', id: 1, query: KIND });
  await until('it is live', () => of('state').at(-1)?.state === 'live');
  const hide = (): void => {
    context.mock.timers.enable({ apis: ['setTimeout'] });
    client.post({ type: 'hidden', hidden: true });
    context.mock.timers.tick(29_000);
    assert.notEqual(of('stream').at(-1)?.stream.state, 'hidden');
    context.mock.timers.tick(1_000);
    context.mock.timers.reset();
  };
  hide();
  assert.deepEqual([of('stream').at(-1)?.stream.state, of('state').at(-1)?.state], ['hidden', 'stale']);
  client.post({ type: 'hidden', hidden: false });
  await until('it is live again', () => of('state').at(-1)?.state === 'live');
  assert.deepEqual([host.lists.length, host.streams.length, host.streams[1]?.watches[0]], [1, 2, host.streams[0]?.watches[0]]);

  hide();
  host.now = () => Date.now() + 10 * 60_000;
  client.post({ type: 'hidden', hidden: false });
  await until('it is listed and live again', () => host.lists.length === 2 && of('state').at(-1)?.state === 'live');
});
