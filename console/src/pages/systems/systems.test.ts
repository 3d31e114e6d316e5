import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { Condition, Row } from '../../api/generated';
import type { JsonSchema, K8sObject } from '../../lib/kubernetes';
import { stateOf } from '../../ui/state';
import { obviousFields } from './columns';
import { counted, needy } from './dashboard';
import { written } from './edit';
import { narrowed } from './list';
import { isHost, saidOf, statefulOf } from './words';

function crd(name: string): JsonSchema {
  const read = parse(readFileSync(`../deploy/crds/${name}.yaml`, 'utf8')) as { spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] } };
  const schema = read.spec.versions[0]?.schema.openAPIV3Schema;
  assert.ok(schema, name);
  return schema;
}

const row = (name: string, status: 'True' | 'False', more: Partial<Row> = {}): Row => ({
  namespace: 'default', name, uid: name, generation: 1, created: '2026-01-01T00:00:00Z', deleting: false, resourceVersion: '1', labels: {},
  ready: { status, reason: 'R', message: 'm', current: true, since: '2026-01-01T00:00:00Z' }, stalled: false, reconciling: false, suspended: false, fields: {}, ...more,
});
const condition = (type: string, status: Condition['status'], more: Partial<Condition> = {}): Condition => ({ type, status, reason: 'Why', message: 'because', lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 2, ...more });
const object = (conditions: unknown, generation = 2): K8sObject => ({ apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a', uid: 'u', resourceVersion: '7', generation, creationTimestamp: '2026-01-01T00:00:00Z', annotations: { x: 'y' }, finalizers: ['f'] }, spec: {}, status: { conditions } as never });

test('the columns of a kind are its single fields, required ones first, without what is deprecated', () => {
  assert.deepEqual(obviousFields(crd('webservers.my.domain')), ['spec.image', 'spec.nodePort', 'spec.replicas', 'status.readyReplicas']);
  assert.deepEqual(obviousFields(crd('configmonitors.magalix.com')).slice(0, 3), ['spec.configmap', 'spec.evictUnowned', 'spec.strategy']);
  assert.deepEqual(obviousFields({}), []);
});

test('a list is narrowed by words in any field, by state and by type', () => {
  const rows = [row('one', 'True', { fields: { 'spec.source.type': 'S3', 'status.domains': ['a.example.com'] } }), row('two', 'False', { stalled: true, namespace: 'shop', fields: { 'spec.source.type': 'WebFolder' } })];
  const names = (search: string, state = '', type = '') => narrowed(rows, { search, state, type }).map(({ name }) => name);
  assert.deepEqual(names(''), ['one', 'two']);
  assert.deepEqual(names('EXAMPLE a.'), ['one']);
  assert.deepEqual(names('shop two'), ['two']);
  assert.deepEqual(names('', 'Failed'), ['two']);
  assert.deepEqual(names('', '', 'S3'), ['one']);
  assert.deepEqual(names('nothing'), []);
});

test('the dashboard counts by state, failing first, and names who needs somebody', () => {
  const rows = [row('a', 'True'), row('b', 'True'), row('c', 'False', { stalled: true }), row('d', 'False', { reconciling: true, ready: { ...row('d', 'False').ready, reason: 'Progressing' } }), row('e', 'True', { suspended: true })];
  assert.deepEqual(counted(rows, (one) => stateOf(one).label, ['Failed', 'In progress', 'Suspended', 'Ready']), [{ key: 'Failed', count: 1 }, { key: 'In progress', count: 1 }, { key: 'Suspended', count: 1 }, { key: 'Ready', count: 2 }]);
  assert.deepEqual(needy(rows).map(({ name }) => name), ['c', 'd']);
});

test('the first blocker stands on top, and a condition of an older generation says so', () => {
  const said = saidOf(object([condition('Ready', 'False'), condition('Progressing', 'True'), condition('Stalled', 'True'), condition('Custom', 'True'), condition('DomainConflict', 'True', { observedGeneration: 1 })]));
  assert.deepEqual(said.map(({ type, tone }) => [type, tone]), [['Ready', 'bad'], ['Stalled', 'bad'], ['DomainConflict', 'bad'], ['Progressing', 'info'], ['Custom', 'muted']]);
  assert.deepEqual(said.map(({ isOld }) => isOld), [false, false, true, false, false]);
});

test('conditions of any shape, and very many of them, do no harm', () => {
  for (const odd of [undefined, null, 'x', 5, {}, [null, 5, 'x', {}, { type: 1 }]]) assert.deepEqual(saidOf(object(odd)), []);
  assert.equal(saidOf(object([{ type: 'constructor', status: 'toString' }]))[0]?.tone, 'muted');
  assert.equal(saidOf(object(Array.from({ length: 10_000 }, (_, at) => condition(`C${at}`, 'True')))).length, 10_000);
});

test('an object has the state that its row has', () => {
  assert.equal(stateOf(statefulOf(object([condition('Ready', 'True')]))).label, 'Ready');
  assert.equal(stateOf(statefulOf(object([condition('Ready', 'True')], 3))).label, 'In progress');
  assert.equal(stateOf(statefulOf(object([condition('Ready', 'False'), condition('Stalled', 'True')]))).label, 'Failed');
  assert.equal(stateOf(statefulOf(object([]))).label, 'Unknown');
});

test('only host names become links', () => {
  for (const host of ['a.example.com', 'a', 'A-1.b', 'a.b:8080']) assert.ok(isHost(host), host);
  for (const odd of ['', 'javascript:alert(1)', 'a b', 'a/b', '-a', 'a@b', 'a"b', `${'a'.repeat(254)}`, 5, null]) assert.ok(!isHost(odd), String(odd));
});

test('what people edit of an object is what people write', () => {
  assert.deepEqual(written(object([])), { apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a', annotations: { x: 'y' } }, spec: {} });
});
