import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Row } from '../api/generated';
import { delay } from './backoff';
import { Changes, mergeRows, rowKey } from './merge';
import { readEvents } from './sse';

const row = (namespace: string | null, name: string, resourceVersion = '1'): Row => ({
  namespace, name, uid: name, generation: 1, created: '', deleting: false, resourceVersion, labels: {}, stalled: false, reconciling: false, suspended: false, fields: {},
  ready: { status: null, reason: '', message: '', current: true, since: null },
});

async function eventsOf(pieces: string[]): Promise<[event: string | undefined, data: string][]> {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({ start(to) { for (const piece of pieces) to.enqueue(encoder.encode(piece)); to.close(); } });
  const found: [string | undefined, string][] = [];
  for await (const some of readEvents(body, 1000)) for (const { event, data } of some) found.push([event, data]);
  return found;
}

test('events come whole, however the stream is cut', async () => {
  const text = ': keep-alive\n\nevent: added\ndata: {"a":1}\n\nevent: bye\r\ndata: one\r\ndata: two\r\n\r\n';
  for (let size = 1; size < text.length; size += 1) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, at) => text.slice(at * size, (at + 1) * size));
    assert.deepEqual(await eventsOf(pieces), [['added', '{"a":1}'], ['bye', 'one\ntwo']], `pieces of ${size}`);
  }
});

test('an event without an end does not fill the memory', async () => {
  await assert.rejects(eventsOf(Array.from({ length: 100 }, () => 'x'.repeat(1024 * 1024))), /max buffer size/);
});

test('letters that are cut in two between pieces are read', async () => {
  const bytes = new TextEncoder().encode('data: é€\n\n');
  const body = new ReadableStream<Uint8Array>({ start(to) { for (const byte of bytes) to.enqueue(Uint8Array.of(byte)); to.close(); } });
  const found = [];
  for await (const some of readEvents(body, 1000)) found.push(...some);
  assert.deepEqual(found.map(({ data }) => data), ['é€']);
});

test('a stream that falls silent is given up', async () => {
  const reading = (async () => { for await (const some of readEvents(new ReadableStream(), 10)) void some; })();
  await assert.rejects(reading, /silent/);
});

test('the delay doubles up to half a minute, with jitter, and is never less than the server asks for', () => {
  assert.deepEqual([0, 1, 2, 3, 10].map((attempt) => delay(attempt, 0)), [500, 1000, 2000, 4000, 15000]);
  assert.deepEqual([delay(0, 0.999), delay(50, 0.999)], [1000, 29985]);
  assert.equal(delay(0, 0.5, 7000), 7000);
});

test('rows are put at their place, replaced and taken out, and the others stay the same objects', () => {
  const rows = [row('a', 'x'), row('b', 'a'), row('b', 'c')];
  const put = [row('b', 'b'), row('a', 'x', '2'), row('a', 'a')];
  const next = mergeRows(rows, put, ['b/c']);
  assert.deepEqual(next.map((row) => `${rowKey(row)}@${row.resourceVersion}`), ['a/a@1', 'a/x@2', 'b/a@1', 'b/b@1']);
  assert.equal(next[2], rows[1]);
  assert.equal(mergeRows(rows, [], []), rows);
});

test('a large change sorts as many small ones do', () => {
  const put = Array.from({ length: 300 }, (_, n) => row(n % 2 ? 'a' : null, `n${(n * 7919) % 300}`));
  const many = mergeRows([row('a', 'n5', '0')], put, []);
  const small = put.reduce((rows, one) => mergeRows(rows, [one], []), [row('a', 'n5', '0')]);
  assert.deepEqual(many, small);
});

test('the next page of a list is put behind the one before', () => {
  const pages = [[row('a', 'a'), row('a', 'b')], [row('a', 'c'), row('b', 'a')], [row('a', 'd')]];
  assert.deepEqual(pages.reduce((rows, page) => mergeRows(rows, page, []), [] as Row[]).map(rowKey), ['a/a', 'a/b', 'a/c', 'a/d', 'b/a']);
});

test('of several changes of one object the last wins', () => {
  const changes = new Changes();
  changes.put(row('a', 'x', '1'));
  changes.gone('a/x');
  changes.gone('a/y');
  changes.put(row('a', 'y', '3'));
  const { put, gone } = changes.take();
  assert.deepEqual([put.map((row) => row.resourceVersion), gone], [['3'], ['a/x']]);
  assert.deepEqual(changes.take(), { put: [], gone: [] });
});

test('rows stand as the API server orders them, also where one namespace begins like another', () => {
  const listed = [row('team-1', 'a'), row('team', 'a'), row('team', 'b')];
  assert.deepEqual(mergeRows(listed, [row('team', 'a', '2')], []).map(rowKey), ['team-1/a', 'team/a', 'team/b']);
  assert.deepEqual(mergeRows(listed, [row('team-1', 'b')], []).map(rowKey), ['team-1/a', 'team-1/b', 'team/a', 'team/b']);
});
