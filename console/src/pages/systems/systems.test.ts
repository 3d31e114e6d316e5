import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { Row } from '../../api/generated';
import type { JsonSchema, K8sObject } from '../../lib/kubernetes';
import { stateOf } from '../../ui/conditions';
import { obviousFields } from './columns';
import { counted, needy } from './dashboard';
import { written } from './edit';
import { narrowed } from './list';
import { isHost } from './parts';

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
const object: K8sObject = { apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a', uid: 'u', resourceVersion: '7', generation: 2, creationTimestamp: '2026-01-01T00:00:00Z', annotations: { x: 'y' }, finalizers: ['f'] }, spec: {}, status: {} };

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

test('only host names become links', () => {
  for (const host of ['a.example.com', 'a', 'A-1.b', 'a.b:8080']) assert.ok(isHost(host), host);
  for (const odd of ['', 'javascript:alert(1)', 'a b', 'a/b', '-a', 'a@b', 'a"b', `${'a'.repeat(254)}`]) assert.ok(!isHost(odd), odd);
});

test('what people edit of an object is what people write', () => {
  assert.deepEqual(written(object), { apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a', annotations: { x: 'y' } }, spec: {} });
});
