import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { JsonSchema } from '../lib/kubernetes';
import { fieldsOf, flat, labelOf } from './model';
import { get, isWithin, mergePatch, parsePath, pathText, set, unset } from './path';
import { validate, validateName, wordsOf } from './validate';

interface Crd {
  spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] };
}

/** The schema of a CRD of this repository; the tests run in console/. */
function crd(name: string): JsonSchema {
  const read = parse(readFileSync(`../deploy/crds/${name}.yaml`, 'utf8')) as Crd;
  const schema = read.spec.versions[0]?.schema.openAPIV3Schema;
  assert.ok(schema, name);
  return schema;
}

const darkroom = crd('darkrooms.deployments.example.com');
const webserver = crd('webservers.my.domain');
const monitor = crd('configmonitors.magalix.com');

const widgets = (schema: JsonSchema) => Object.fromEntries(flat(fieldsOf(schema)).map(({ path, widget, required }) => [pathText(path), required ? `${widget}!` : widget]));
const faults = (spec: unknown, schema: JsonSchema) => validate({ spec }, schema).map(({ path, message }) => `${pathText(path)}: ${message}`);

test('every field of a Darkroom has its widget', () => {
  const found = widgets(darkroom);
  const wanted = {
    'spec.source': 'group!', 'spec.source.type': 'choice!', 'spec.source.baseUrl': 'text', 'spec.source.credentialsSecretRef': 'group',
    'spec.source.credentialsSecretRef.name': 'text!', 'spec.subDomains': 'chips!', 'spec.version': 'text', 'spec.image': 'text',
  };
  for (const [path, widget] of Object.entries(wanted)) assert.equal(found[path], widget, path);
  assert.ok(!Object.keys(found).some((path) => path.startsWith('status')));
});

test('every field of a WebServer has its widget, and defaults are placeholders', () => {
  assert.deepEqual(widgets(webserver), { 'spec.image': 'text!', 'spec.foo': 'text', 'spec.nodePort': 'number', 'spec.replicas': 'number' });
  assert.equal(flat(fieldsOf(webserver)).find(({ key }) => key === 'replicas')?.placeholder, '1');
});

test('what knows some of its fields shows them, and booleans are switches', () => {
  const found = widgets(monitor);
  assert.equal(found['spec.podSelector'], 'group!');
  assert.equal(found['spec.podSelector.matchLabels'], 'map');
  assert.equal(found['spec.podSelector.matchExpressions'], 'list');
  assert.equal(found['spec.evictUnowned'], 'switch');
  assert.equal(found['spec.strategy'], 'choice');
});

test('lists, maps and either of two types have widgets of their own', () => {
  const properties: Record<string, JsonSchema> = {
    ports: { type: 'array', items: { type: 'object', properties: { port: { type: 'integer', minimum: 1, maximum: 65535 } } } },
    weights: { type: 'array', items: { type: 'integer' } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    deep: { type: 'object', additionalProperties: { type: 'object', properties: {} } },
    port: { 'x-kubernetes-int-or-string': true },
    what: {},
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  };
  const schema: JsonSchema = { type: 'object', properties: { spec: { type: 'object', properties } } };
  assert.deepEqual(widgets(schema), { 'spec.ports': 'list', 'spec.weights': 'list', 'spec.labels': 'map', 'spec.deep': 'yaml', 'spec.port': 'int-or-string', 'spec.what': 'yaml', 'spec.free': 'yaml' });
});

test('labels are words', () => {
  assert.deepEqual(['nodePort', 'baseUrl', 'ttlSeconds', 'HTTPPort', 'a', 'sub_domains'].map(labelOf), ['Node port', 'Base URL', 'TTL seconds', 'HTTP port', 'A', 'Sub domains']);
});

test('an empty Darkroom names the fields that somebody can fill in', () => {
  assert.deepEqual(faults({}, darkroom), ['spec.source.type: is required', 'spec.subDomains: is required']);
});

test('a Darkroom that the schema refuses says where and why', () => {
  assert.deepEqual(faults({ source: { type: 'Ftp', baseUrl: 5, extra: 1 }, subDomains: ['a', '', 'a'], version: 'x'.repeat(128) }, darkroom), [
    'spec.source.type: must be one of WebFolder, S3',
    'spec.source.baseUrl: must be a text',
    'spec.source.extra: is not a field of this kind',
    'spec.subDomains[2]: stands there twice',
    'spec.subDomains[1]: must not be empty',
    'spec.version: must have at most 127 characters; it has 128',
  ]);
  assert.deepEqual(faults({ source: { type: 'S3' }, subDomains: [] }, darkroom), ['spec.subDomains: needs at least one']);
});

test('what stands beside the spec is no field either', () => {
  assert.deepEqual(validate({ spec: { image: 'x' }, sepc: {}, '': null }, webserver).map(({ path }) => path), [['sepc'], ['']]);
});

test('numbers are judged by type, format and range', () => {
  const of = (replicas: unknown) => faults({ image: 'x', replicas }, webserver);
  assert.deepEqual(of(-1), ['spec.replicas: must be at least 0']);
  assert.deepEqual(of(1.5), ['spec.replicas: must be a whole number']);
  assert.deepEqual(of('two'), ['spec.replicas: must be a whole number']);
  assert.deepEqual(of(2 ** 31), ['spec.replicas: must lie between -2147483648 and 2147483647']);
  assert.deepEqual(of(3), []);
});

test('maps with a key that must be unique, and patterns, are judged', () => {
  const list: JsonSchema = { type: 'array', 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'], items: { type: 'object', properties: { name: { type: 'string', pattern: '^[a-z]+$' } } } };
  assert.deepEqual(validate([{ name: 'a' }, { name: 'a' }, { name: 'B' }], list).map(({ path, message }) => `${pathText(path)} ${message}`), ['[1] stands there twice', '[2].name must match ^[a-z]+$']);
  assert.deepEqual(validate('x', { type: 'string', pattern: '(?i)X' }), [], 'a pattern that browsers do not know is left to the server');
});

test('paths are read as servers write them, and written so that they read back', () => {
  const cases: [string, (string | number)[]][] = [
    ['spec.source.baseUrl', ['spec', 'source', 'baseUrl']],
    ['spec.subDomains[0]', ['spec', 'subDomains', 0]],
    ['spec.a[1][2].b', ['spec', 'a', 1, 2, 'b']],
    ['metadata.labels[a.b/c]', ['metadata', 'labels', 'a.b/c']],
  ];
  for (const [text, path] of cases) {
    assert.deepEqual(parsePath(text), path, text);
    assert.equal(pathText(path), text);
  }
  assert.deepEqual(parsePath('.spec["x"]'), ['spec', 'x']);
  assert.deepEqual(parsePath('<nil>'), [], 'a rule about the whole object');
  for (const odd of ['', '.', '..', '[', 'a[', ']', 'a]b', '[]', '.'.repeat(5000), 'a[0'.repeat(2000)]) assert.ok(parsePath(odd).length <= 64, odd.slice(0, 20));
});

test('setting leaves what was given as it was, and removing takes empty groups along', () => {
  const before = { spec: { source: { type: 'S3', credentialsSecretRef: { name: 'x' } } } };
  const after = unset(before, ['spec', 'source', 'credentialsSecretRef', 'name']);
  assert.deepEqual(after, { spec: { source: { type: 'S3' } } });
  assert.deepEqual(before.spec.source.credentialsSecretRef, { name: 'x' });
  assert.deepEqual(unset({ spec: { a: 1 } }, ['spec', 'a']), { spec: {} });
  assert.deepEqual(set({}, ['spec', 'list', 0, 'a'], 1), { spec: { list: [{ a: 1 }] } });
  assert.deepEqual(unset({ spec: { list: ['a', 'b'] } }, ['spec', 'list', 0]), { spec: { list: ['b'] } });
  assert.equal(get({ spec: {} }, ['spec', 'constructor']), undefined);
  set({}, ['__proto__', 'polluted'], true);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  assert.ok(isWithin(['spec', 'a', 0], ['spec', 'a']));
});

test('a merge patch holds what changed alone, and null for what went away', () => {
  assert.equal(mergePatch({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] }), undefined);
  assert.deepEqual(mergePatch({ spec: { a: 1, b: { c: 1, d: 2 }, e: [1] } }, { spec: { a: 1, b: { c: 2 }, e: [1, 2] } }), { spec: { b: { c: 2, d: null }, e: [1, 2] } });
});

test('names are judged as the API server judges them', () => {
  for (const name of ['a', 'a-b', 'a.b', '0', 'x'.repeat(253)]) assert.equal(validateName(name), undefined, name);
  for (const name of ['', undefined, '-a', 'a-', 'A', 'a..b', 'ä', 'x'.repeat(254)]) assert.ok(validateName(name), String(name));
});

test("a server's words lose what the page shows anyway", () => {
  assert.equal(wordsOf('Invalid value: "object": a source of type S3 needs bucket'), 'a source of type S3 needs bucket');
  assert.equal(wordsOf('Invalid value: "a \\"b\\": c": must be x'), 'must be x');
  assert.equal(wordsOf('Invalid value: In and NotIn need values'), 'In and NotIn need values', 'a value that the host keeps to itself');
  assert.equal(wordsOf('Required value'), 'is required');
  assert.equal(wordsOf('Unsupported value: "x": supported values: "A", "B"'), 'must be one of "A", "B"');
  assert.equal(wordsOf('something else'), 'something else');
});
