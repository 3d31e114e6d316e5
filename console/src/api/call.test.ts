import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProblemError, useHooks } from '../lib/api';
import type { K8sObject } from '../lib/kubernetes';
import { call, inexact, pathOf } from './call';
import { callObject, patchSeen, pathOfObject } from './objects';

const kind = { group: 'a.example.com', version: 'v1', plural: 'darkrooms' };

test('paths of objects name the namespace or say that there is none', () => {
  assert.equal(pathOfObject('getObject', { ...kind, namespace: 'default', name: 'x' }), '/api/v1/objects/a.example.com/v1/darkrooms/namespaces/default/x');
  assert.equal(pathOfObject('getObject', { ...kind, namespace: null, name: 'x/y' }), '/api/v1/objects/a.example.com/v1/darkrooms/cluster/x%2Fy');
  assert.equal(pathOfObject('createObject', { ...kind, namespace: '' }), '/api/v1/objects/a.example.com/v1/darkrooms/cluster');
  assert.equal(pathOf('listObjects', { path: kind }), '/api/v1/objects/a.example.com/v1/darkrooms');
});

test('what is not given is not in the query', () => {
  assert.equal(pathOf('listObjects', { path: kind, query: { limit: 1, namespace: undefined, search: '', continue: null, labelSelector: 'é&' } }), '/api/v1/objects/a.example.com/v1/darkrooms?limit=1&labelSelector=%C3%A9%26');
  assert.equal(pathOf('stream', { query: { watch: ['a;b', 'c'] } }), '/api/v1/stream?watch=a%3Bb&watch=c');
  assert.equal(pathOf('listKinds'), '/api/v1/kinds');
});

test('a call is sent as the description says, and answered or thrown', async (context) => {
  useHooks({ token: () => 'ann', unauthorized: () => Promise.resolve(false) });
  const sent: [string, RequestInit][] = [];
  const answers = [Response.json({ allowed: [true] }), Response.json({ metadata: {} }), new Response('{"title":"T","status":403,"detail":"D"}', { status: 403 })];
  context.mock.method(globalThis, 'fetch', (path: string, init: RequestInit) => {
    sent.push([path, init]);
    return Promise.resolve(answers.shift());
  });
  assert.deepEqual(await call('can', { body: { checks: [] } }), { allowed: [true] });
  await callObject('patchObject', { ...kind, name: 'x' }, { body: { spec: null }, query: { dryRun: 'All' } });
  await assert.rejects(call('listKinds'), (error) => error instanceof ProblemError && error.problem.detail === 'D');
  const told = sent.map(([path, { method, body, headers }]) => [method, path, body, new Headers(headers).get('content-type'), new Headers(headers).get('authorization')]);
  assert.deepEqual(told, [
    ['POST', '/api/v1/can', '{"checks":[]}', 'application/json', 'Bearer ann'],
    ['PATCH', '/api/v1/objects/a.example.com/v1/darkrooms/cluster/x?dryRun=All', '{"spec":null}', 'application/merge-patch+json', 'Bearer ann'],
    ['GET', '/api/v1/kinds', null, null, 'Bearer ann'],
  ]);
});

test('a whole number that the page may have rounded is refused with its field, and nothing is sent', async (context) => {
  const sent = context.mock.method(globalThis, 'fetch', () => Promise.resolve(Response.json({})));
  assert.equal(inexact({ a: [1, 2 ** 53 - 1, -0.5, 1e300, '9007199254740993'], b: null }), undefined);
  assert.equal(inexact({ a: [1, -(2 ** 53)] }), 'a[1]');
  const body = { spec: { a: [{ b: 1 }, { b: Number('9007199254740993') }] } };
  await assert.rejects(callObject('patchObject', { ...kind, name: 'x' }, { body }), (error) => error instanceof ProblemError && error.problem.causes[0]?.field === 'spec.a[1].b');
  assert.equal(sent.mock.callCount(), 0);
});

test('a patch is of the object that was seen: a status that is written meanwhile is no conflict, and another generation is', async (context) => {
  const version = (resourceVersion: string, generation: number): K8sObject => ({ apiVersion: 'a/v1', kind: 'A', metadata: { name: 'x', uid: 'u', resourceVersion, generation, creationTimestamp: '' } });
  let now = version('2', 4);
  const patched: string[] = [];
  context.mock.method(globalThis, 'fetch', (_: string, { method, body }: RequestInit) => {
    if (method === 'GET') return Promise.resolve(Response.json(now));
    const { metadata: { resourceVersion } } = JSON.parse(String(body)) as K8sObject;
    patched.push(resourceVersion);
    return Promise.resolve(resourceVersion === now.metadata.resourceVersion ? Response.json(now) : new Response('{"title":"Conflict","status":409}', { status: 409 }));
  });
  const patch = () => patchSeen(kind, version('1', 4), { spec: { a: 1 } }, ({ metadata }) => metadata.generation === 4);
  await patch();
  assert.deepEqual(patched.splice(0), ['1', '2']);
  now = version('3', 5);
  await assert.rejects(patch(), (error) => error instanceof ProblemError && error.problem.status === 409);
  assert.deepEqual(patched, ['1'], 'it is not tried on what nobody has seen');
});
