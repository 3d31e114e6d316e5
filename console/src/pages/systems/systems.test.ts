import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { Kind, Row } from '../../api/generated';
import type { JsonSchema, K8sObject } from '../../lib/kubernetes';
import { kinds, titleOf } from '../../lib/kinds';
import { stateOf } from '../../ui/conditions';
import { atColumn, factColumns, listColumns, obviousFields, printed } from './columns';
import { counted, needy } from './dashboard';
import { blank, written } from './edit';
import { narrowed } from './list';

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

test('a list has the printer columns that kubectl prints, and a page all of them', () => {
  const columns = [{ name: 'SIZE', type: 'integer', priority: 0, path: '.spec.size' }, { name: 'READY', type: 'string', priority: 1, path: '.status.conditions[?(@.type=="Ready")].status' }];
  const schema: JsonSchema = { properties: { spec: { properties: { names: { type: 'array', items: { type: 'string' } }, size: { type: 'integer' }, word: { type: 'string', format: 'password' } } } } };
  assert.deepEqual(listColumns({ columns, schema }).map(({ name }) => name), ['SIZE']);
  assert.deepEqual(listColumns({ columns: [], schema }).map(({ name, path }) => [name, path]), [['Size', '.spec.size']], 'a kind without any has the fields that fit');
  assert.deepEqual(factColumns({ columns, schema }).map(({ name }) => name), ['SIZE', 'READY', 'Names']);
});

test('a list has as many columns as the host has fields for', () => {
  const columns = Array.from({ length: 30 }, (_, at) => ({ name: `C${at}`, type: 'string', priority: 0, path: `.spec.c${at}` }));
  assert.equal(listColumns({ columns, schema: {} }).length, 24);
});

test('no column shows a password, nor what has one in it', () => {
  const secret: JsonSchema = { type: 'string', format: 'password' };
  const keys: JsonSchema = { type: 'object', properties: { 'a.b': secret, name: { type: 'string' } } };
  const schema: JsonSchema = { properties: { spec: { type: 'object', properties: { keys, list: { type: 'array', items: keys }, map: { type: 'object', additionalProperties: secret } } } } };
  const shown = ['.metadata.name', '.spec.keys.name', '.spec.list[0].name', '.spec.list[?(@.name=="x")].name', '.spec.other'];
  const hidden = ['.spec', '.spec.keys', '.spec.keys.a\\.b', '.spec.list', '.spec.list[0]', '.spec.list[1].a\\.b', '.spec.list[?(@.name=="x")].a\\.b', '.spec.map.x', '.spec.list[*].a\\.b'];
  const columns = [...hidden, ...shown].map((path) => ({ name: path, type: 'string', priority: 0, path }));
  assert.deepEqual(listColumns({ columns, schema }).map(({ path }) => path), shown);
  assert.deepEqual(factColumns({ columns, schema }).map(({ path }) => path), shown);
});

test('the path of a column leads to one value', () => {
  const thing = { metadata: { annotations: { 'a.b/c': 'x' } }, spec: { list: [{ n: 1 }, { n: 2 }] }, status: { conditions: [{ type: 'Stalled', status: 'False' }, { type: 'Ready', status: 'True' }] } };
  const found = ['.spec.list[1].n', '.metadata.annotations.a\\.b/c', '.status.conditions[?(@.type=="Ready")].status', ".status.conditions[?(@.type == 'Stalled')].status", '.status.conditions[?(@.type=="Gone")].status', '.spec.list[*].n', '.spec.list.n'].map((path) => atColumn(thing, path));
  assert.deepEqual(found, [2, 'x', 'True', 'False', undefined, undefined, undefined]);
  assert.deepEqual([['a', 'b'], { a: 1 }, true].map(printed), ['a, b', '{"a":1}', 'true']);
});

test('a list is narrowed by words in any field and by state', () => {
  const rows = [row('one', 'True', { fields: { '.spec.type': 'S3', '.status.domains': ['a.example.com'] } }), row('two', 'False', { stalled: true, namespace: 'shop', fields: { '.spec.type': 'WebFolder' } })];
  const names = (search: string, state = '') => narrowed(rows, { search, state }).map(({ name }) => name);
  assert.deepEqual(names(''), ['one', 'two']);
  assert.deepEqual(names('EXAMPLE a.'), ['one']);
  assert.deepEqual(names('shop two'), ['two']);
  assert.deepEqual(names('', 'Failed'), ['two']);
  assert.deepEqual(names('s3'), ['one']);
  assert.deepEqual(names('nothing'), []);
});

test('the dashboard counts by state, failing first, and names who needs somebody', () => {
  const rows = [row('a', 'True'), row('b', 'True'), row('c', 'False', { stalled: true }), row('d', 'False', { reconciling: true, ready: { ...row('d', 'False').ready, reason: 'Progressing' } }), row('e', 'True', { suspended: true })];
  assert.deepEqual(counted(rows, (one) => stateOf(one).label, ['Failed', 'In progress', 'Suspended', 'Ready']), [{ key: 'Failed', count: 1 }, { key: 'In progress', count: 1 }, { key: 'Suspended', count: 1 }, { key: 'Ready', count: 2 }]);
  const kind: Kind = { group: 'a.b', version: 'v1', plural: 'as', kind: 'A', namespaced: true, shortNames: [], reconcilers: [], mayList: true };
  const other = { ...kind, kind: 'B' };
  assert.deepEqual(needy([{ kind, rows }, { kind: other, rows: [row('f', 'False')] }]).map(({ kind, row }) => `${kind.kind} ${row.name}`), ['A c', 'B f', 'A d'], 'of every kind');
});

test('a new object has a spec and a namespace where its kind has them', () => {
  const schema = (properties: Record<string, JsonSchema>, namespaced: boolean) => ({ group: 'a.b', version: 'v1', plural: 'as', kind: 'A', namespaced, columns: [], schema: { properties } });
  assert.deepEqual(blank(schema({ spec: { type: 'object' } }, true), 'shop'), { apiVersion: 'a.b/v1', kind: 'A', metadata: { namespace: 'shop' }, spec: {} });
  assert.deepEqual(blank(schema({ size: { type: 'integer' } }, false), 'shop'), { apiVersion: 'a.b/v1', kind: 'A', metadata: {} });
});

test('kinds of the same name are told apart by their groups', () => {
  const kind = (group: string, kind: string): Kind => ({ group, version: 'v1', plural: 'x', kind, namespaced: true, shortNames: [], reconcilers: [], mayList: true });
  const items = [kind('a.b', 'Proxy'), kind('c.d', 'Proxy'), kind('a.b', 'Room')];
  kinds.value = { items, unread: null };
  assert.deepEqual(items.map(titleOf), ['Proxies (a.b)', 'Proxies (c.d)', 'Rooms']);
});

test('what people edit of an object is what people write', () => {
  assert.deepEqual(written(object), { apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a', annotations: { x: 'y' } }, spec: {} });
});
