import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { JsonSchema } from '../lib/kubernetes';
import { needsLines } from '../ui/text';
import { faultsOf, wordsOf } from './faults';
import { covered, fieldsOf, flat, hasPlace, isWhole, itemOf, labelOf, shownFields, type Thing, type Widget } from './model';
import { get, isWithin, mergePatch, parsePath, pathText, set, unset } from './path';

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

test('what must be given comes first, in the order in which the schema says so; what is for old objects is shown of these', () => {
  const schema: JsonSchema = { properties: { spec: { type: 'object', required: ['size', 'name'], properties: { a: { type: 'string' }, name: { type: 'string' }, old: { type: 'string', description: 'Deprecated: use a.' }, size: { type: 'string' } } } } };
  const names = (thing: Thing) => shownFields(fieldsOf(schema), thing).map(({ key }) => key);
  assert.deepEqual(names({ spec: {} }), ['size', 'name', 'a']);
  assert.deepEqual(names({ spec: { old: 'x' } }), ['size', 'name', 'a', 'old']);
});

/** The names of the members of a group that are shown, with what must be given marked. */
function membersShown(schema: JsonSchema, path: string, thing: Thing): string[] {
  const group = flat(shownFields(fieldsOf(schema), thing)).find((field) => pathText(field.path) === path);
  return group?.fields.map(({ key, required }) => (required ? `${key}!` : key)) ?? [];
}

test('of a union the fields of what is chosen are shown, and those with a value', () => {
  const of = (source: Thing) => membersShown(darkroom, 'spec.source', { spec: { source } });
  const bucket = ['accessKey', 'bucket', 'credentialsSecretRef', 'endpoint', 'pathPrefix', 'region', 'secretKey'];
  assert.deepEqual(of({}), ['type!']);
  assert.deepEqual(of({ type: 'WebFolder' }), ['type!', 'baseUrl']);
  assert.deepEqual(of({ type: 'S3' }), ['type!', ...bucket]);
  // What would be refused, or does nothing, is not kept from whoever has to take it out.
  assert.deepEqual(of({ type: 'WebFolder', region: 'r' }), ['type!', 'baseUrl', 'region']);
});

test('what an optional group requires must be given only where the group is there', () => {
  const name = (source: Thing) => membersShown(darkroom, 'spec.source.credentialsSecretRef', { spec: { source: { type: 'S3', ...source } } });
  assert.deepEqual(name({}), ['name']);
  assert.deepEqual(name({ credentialsSecretRef: {} }), ['name!']);
  assert.deepEqual(membersShown(darkroom, 'spec.source', {}), ['type!'], 'of a group that must be there');
});

test('the rules of a union are read as CRDs write them, in a list too; others change nothing', () => {
  const text: JsonSchema = { type: 'string' };
  const cases: [rule: string, chosen: string[], other: string[]][] = [
    ["self.type == 'A' ? has(self.a) : !has(self.a)", ['a!'], []],
    ['has(self.type) && self.type == "A" ?  has(self.a) : !has(self.a)', ['a!'], []],
    ["self.type == 'A' ? has(self.a) : true", ['a!'], ['a']],
    ["!(!has(self.a) && self.type == 'A')", ['a!'], ['a']],
    ["!(has(self.a) && self.type != 'A')", ['a'], []],
    ["self.type != 'A' || has(self.a)", ['a'], ['a']],
    ["has(self.b) && self.type == 'A' ? has(self.a) : !has(self.a)", ['a'], ['a']],
    ["self.type == 'A' ? has(self.a) : !has(self.b)", ['a'], ['a']],
    ["self.other == 'A' ? has(self.a) : !has(self.a)", ['a'], ['a']],
    ["self.type == 'A' && size(self.a) > 2", ['a'], ['a']],
  ];
  const both = ['A', 'Full A'].flatMap((value) => cases.map(([rule, chosen, other]) => ({ value, rule: rule.replace(/(["'])A\1/, `$1${value}$1`), chosen, other })));
  for (const { value, rule, chosen, other } of both) {
    const items: JsonSchema = { type: 'object', properties: { a: text, b: text, type: text }, 'x-kubernetes-validations': [{ rule }] };
    const list: JsonSchema = { type: 'object', properties: { list: { type: 'array', items } } };
    const [field] = fieldsOf({ properties: { spec: list } });
    assert.ok(field);
    const of = (type: string) => itemOf(field, 0, { spec: { list: [{ type }] } }).fields.map(({ key, required }) => (required ? `${key}!` : key)).filter((key) => key.startsWith('a'));
    assert.deepEqual([of(value), of('B')], [chosen, other], rule);
  }
});

test('the rules of a group are read once, however often it is drawn', () => {
  let reads = 0;
  const rule = { get rule() { reads += 1; return "self.type == 'A' ? has(self.a) : !has(self.a)"; } };
  const items: JsonSchema = { type: 'object', properties: { a: { type: 'string' }, type: { type: 'string' } }, 'x-kubernetes-validations': [rule] };
  const [field] = fieldsOf({ properties: { spec: { type: 'object', properties: { list: { type: 'array', items } } } } });
  assert.ok(field);
  const keys = [0, 1, 2].map((at) => itemOf(field, at, {}).fields.map(({ key }) => key));
  assert.deepEqual([keys, reads], [[['type'], ['type'], ['type']], 1]);
});

test('a form has a place for what is wrong with its fields, and says so of nothing else', () => {
  const items: JsonSchema = { type: 'object', properties: { key: { type: 'string' } } };
  const properties: Record<string, JsonSchema> = { group: { type: 'object', properties: { name: { type: 'string' } } }, list: { type: 'array', items }, chips: { type: 'array', items: { type: 'string' } }, size: { type: 'integer' } };
  const fields = fieldsOf({ properties: { spec: { type: 'object', properties } } });
  const has = (path: string) => hasPlace(fields, parsePath(path), {});
  for (const path of ['spec.group', 'spec.group.name', 'spec.list', 'spec.list[0]', 'spec.list[1].key', 'spec.chips[3]', 'spec.size']) assert.ok(has(path), path);
  for (const path of ['', 'spec', 'spec.colour', 'spec.group.colour', 'spec.list[0].colour', 'spec.size.x', 'status.x']) assert.ok(!has(path), path);
  // What is not shown has no place.
  const place = (type: string) => hasPlace(shownFields(fieldsOf(darkroom), { spec: { source: { type } } }), ['spec', 'source', 'region'], {});
  assert.deepEqual([place('S3'), place('WebFolder')], [true, false]);
});

test('what the schema calls a password nobody reads over a shoulder', () => {
  const secret: JsonSchema = { type: 'string', format: 'password' };
  const keys: JsonSchema = { type: 'object', properties: { secret, name: { type: 'string' } } };
  const deep = Array.from({ length: 9 }).reduce<JsonSchema>((a) => ({ type: 'object', properties: { a } }), secret);
  const inDeep = (value: string) => Array.from({ length: 9 }).reduce<unknown>((a) => ({ a }), value);
  const places: [of: JsonSchema, value: unknown, shown: unknown][] = [
    [keys, { secret: 's', name: 'n', other: 1 }, { secret: '<hidden>', name: 'n', other: 1 }],
    [keys, { name: 'n' }, { name: 'n' }],
    [{ type: 'array', items: keys }, [{ secret: 's' }, { name: 'n' }], [{ secret: '<hidden>' }, { name: 'n' }]],
    [{ type: 'array', items: secret }, ['s', 't'], ['<hidden>', '<hidden>']],
    [{ type: 'object', additionalProperties: secret }, { a: 's' }, { a: '<hidden>' }],
    [{ type: 'object', additionalProperties: keys }, { a: { secret: 's' } }, { a: { secret: '<hidden>' } }],
    [deep, inDeep('s'), inDeep('<hidden>')],
    [keys, 'of another type', 'of another type'],
  ];
  for (const [of, value, shown] of places) {
    for (const part of ['spec', 'status']) assert.deepEqual(covered({ kind: 'A', [part]: { of: value } }, { properties: { [part]: { type: 'object', properties: { of } } } }), { kind: 'A', [part]: { of: shown } }, JSON.stringify(value));
  }
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

test('a text that is long or has several lines is edited in several', () => {
  assert.deepEqual(['', 'one', 'x'.repeat(80), 'x'.repeat(81), 'one\ntwo', 'one\n'].map(needsLines), [false, false, false, true, true, true]);
});

test('what its widget does not show whole is edited as YAML', () => {
  const all: Record<Exclude<Widget, 'yaml'>, { whole: unknown[]; not: unknown[] }> = {
    text: { whole: ['', 'a', 'a\nb', 7], not: ['a\r\nb', {}, ['a']] },
    number: { whole: [1, 'one'], not: [{}] },
    'int-or-string': { whole: [1, 'http'], not: [[1], 'a\r'] },
    choice: { whole: ['a'], not: [{ a: 1 }] },
    switch: { whole: [true, false], not: ['yes', 1] },
    chips: { whole: [[], ['a', 'b c']], not: ['a', [1], [null], Array(201).fill('a')] },
    list: { whole: [[], [{}], [1, 'a']], not: [{}, 'a', Array(201).fill({})] },
    map: { whole: [{}, { a: '1', b: 2, c: 'd\ne' }], not: [[], 'a', { a: { b: 1 } }, { a: null }, { a: 'b\r' }, { 'a\r': 'b' }, Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`k${at}`, '']))] },
    group: { whole: [{}, { a: 1 }], not: ['a', [1], 1] },
  };
  for (const [widget, { whole, not }] of Object.entries(all) as [Widget, { whole: unknown[]; not: unknown[] }][]) {
    for (const value of [...whole, undefined, null]) assert.ok(isWhole(widget, value), `${widget}: ${JSON.stringify(value)}`);
    for (const value of not) assert.ok(!isWhole(widget, value) && isWhole('yaml', value), `${widget}: ${JSON.stringify(value)}`);
  }
});

test('labels are words', () => {
  assert.deepEqual(['nodePort', 'baseUrl', 'ttlSeconds', 'HTTPPort', 'a', 'sub_domains'].map(labelOf), ['Node port', 'Base URL', 'TTL seconds', 'HTTP port', 'A', 'Sub domains']);
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

test("a server's words lose what the page shows anyway", () => {
  assert.equal(wordsOf('Invalid value: "object": a source of type S3 needs bucket'), 'a source of type S3 needs bucket');
  assert.equal(wordsOf('Invalid value: "a \\"b\\": c": must be x'), 'must be x');
  assert.equal(wordsOf('Invalid value: In and NotIn need values'), 'In and NotIn need values', 'a value that the host keeps to itself');
  assert.equal(wordsOf('Required value'), 'is required');
  assert.equal(wordsOf('Unsupported value: "x": supported values: "A", "B"'), 'must be one of "A", "B"');
  assert.equal(wordsOf('Invalid value: -1: spec.replicas in body should be greater than or equal to 0'), 'should be greater than or equal to 0');
  assert.equal(wordsOf('Too many: 65: must have at most 64 items'), 'must have at most 64 items');
  assert.equal(wordsOf('something else'), 'something else');
});

test('that other rules were not checked is said only where nothing else is', () => {
  const more = { field: '<nil>', reason: 'FieldValueInvalid', message: 'Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation' };
  const problem = (causes: object[]) => ({ title: '', status: 422, detail: '', details: '', causes }) as Parameters<typeof faultsOf>[0];
  assert.deepEqual(faultsOf(problem([{ field: 'spec.version', reason: '', message: 'no' }, more])).map(({ path }) => pathText(path)), ['spec.version']);
  assert.equal(faultsOf(problem([more])).length, 1);
});

test('a name that is taken is a fault of the name of a new object, and of nothing where none is made', () => {
  const taken = { title: 'Conflict', status: 409, detail: '', details: '', causes: [], reason: 'AlreadyExists' };
  assert.deepEqual(faultsOf(taken, true), [{ path: ['metadata', 'name'], message: 'is taken already' }]);
  assert.deepEqual(faultsOf(taken), []);
});

test('the causes of a problem go to the fields that they name', () => {
  const causes = [{ field: 'spec.subDomains[0]', message: 'Invalid value: "A": must be one DNS label', reason: 'FieldValueInvalid' }];
  assert.deepEqual(faultsOf({ title: '', status: 422, detail: '', details: '', causes }), [{ path: ['spec', 'subDomains', 0], message: 'must be one DNS label' }]);
});
