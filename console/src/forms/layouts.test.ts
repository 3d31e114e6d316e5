import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { JsonSchema } from '../lib/kubernetes';
import { covered, partsOf, plainLayout, type Thing } from './layout';
import { configMonitor, darkroom, layoutOf, webServer } from './layouts';
import { fieldsOf } from './model';
import { pathText } from './path';
import { faultsOf, judge } from './use-form';

function crd(name: string): JsonSchema {
  const read = parse(readFileSync(`../deploy/crds/${name}.yaml`, 'utf8')) as { spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] } };
  const schema = read.spec.versions[0]?.schema.openAPIV3Schema;
  assert.ok(schema, name);
  return schema;
}

const schema = crd('darkrooms.deployments.example.com');
const source = (source: Thing, more: Thing = {}): Thing => ({ metadata: { name: 'a' }, spec: { source, subDomains: ['a'], ...more } });
const shown = (thing: Thing, way = 'keys') => partsOf(fieldsOf(schema), darkroom, thing, { '@credentials': way })
  .flatMap(({ entries }) => entries.map((entry) => ('node' in entry ? pathText(entry.node.path) : entry.choice)));
const wrong = (thing: Thing, way = 'keys') => judge(thing, { schema, layout: darkroom, isNew: true }, { '@credentials': way }).map(({ path, message }) => `${pathText(path)}: ${message}`);

test('a web folder shows its address and no field of a bucket', () => {
  const fields = shown(source({ type: 'WebFolder' }));
  assert.ok(fields.includes('spec.source.baseUrl'));
  for (const field of ['bucket', 'region', 'pathPrefix', 'endpoint', 'accessKey', 'secretKey']) assert.ok(!fields.includes(`spec.source.${field}`), field);
  assert.ok(!fields.includes('@credentials'));
});

test('a bucket shows region, bucket, prefix and endpoint, and either keys or a Secret', () => {
  const fields = shown(source({ type: 'S3' }));
  for (const field of ['bucket', 'region', 'pathPrefix', 'endpoint', 'accessKey', 'secretKey']) assert.ok(fields.includes(`spec.source.${field}`), field);
  assert.ok(fields.includes('@credentials') && !fields.includes('spec.source.baseUrl'));
  const withSecret = shown(source({ type: 'S3' }), 'secret');
  assert.ok(withSecret.includes('spec.source.credentialsSecretRef.name') && !withSecret.includes('spec.source.secretKey'));
});

test('switching the type drops the fields of the other', () => {
  const both = { type: 'S3', baseUrl: 'http://x', bucket: 'b', region: 'r', accessKey: 'k', secretKey: 's', credentialsSecretRef: { name: 'n' } };
  assert.deepEqual(darkroom.clean(source(both), { '@credentials': 'keys' }), source({ type: 'S3', bucket: 'b', region: 'r', accessKey: 'k', secretKey: 's' }));
  assert.deepEqual(darkroom.clean(source(both), { '@credentials': 'secret' }), source({ type: 'S3', bucket: 'b', region: 'r', credentialsSecretRef: { name: 'n' } }));
  assert.deepEqual(darkroom.clean(source({ ...both, type: 'WebFolder' }), {}), source({ type: 'WebFolder', baseUrl: 'http://x' }));
});

test('a Darkroom is told what it lacks, at the field', () => {
  assert.deepEqual(wrong(source({ type: 'WebFolder', baseUrl: 'https://a/b' })), []);
  assert.deepEqual(wrong(source({ type: 'WebFolder' })), ['spec.source.baseUrl: is required']);
  assert.deepEqual(wrong(source({ type: 'WebFolder', baseUrl: 'ftp://x' })), ['spec.source.baseUrl: must be an address that begins with http:// or https://']);
  assert.deepEqual(wrong(source({ type: 'S3' })), ['bucket', 'region', 'accessKey', 'secretKey'].map((field) => `spec.source.${field}: is required`));
  assert.deepEqual(wrong(source({ type: 'S3', bucket: 'b', region: 'r', pathPrefix: 'x' }), 'secret'), ["spec.source.pathPrefix: must begin with '/'", 'spec.source.credentialsSecretRef.name: is required']);
  assert.deepEqual(wrong({ ...source({ type: 'WebFolder', baseUrl: 'http://a' }, { subDomains: ['ok', 'A.b'] }), metadata: { name: '1a' } }), [
    "spec.subDomains[1]: must be one DNS label: lower-case letters, digits and inner '-', without dots",
    "metadata.name: must be at most 63 lower-case letters, digits and '-', beginning with a letter: a Service has the same name",
  ]);
});

test('a WebServer is told at its name what its Service cannot be called', () => {
  const of = (name: string) => judge({ metadata: { name }, spec: { image: 'x' } }, { schema: crd('webservers.my.domain'), layout: webServer, isNew: true }, {}).map(({ path, message }) => `${pathText(path)} ${message}`);
  assert.deepEqual(of('a'.repeat(55)), []);
  assert.deepEqual(of('a'.repeat(56)), ['metadata.name may have at most 55 characters, because the Service is called <name>-service']);
  for (const name of ['1st', 'a.b', 'A']) assert.match(of(name).join(), /^metadata\.name must begin with a letter/, name);
  assert.deepEqual(of(''), ['metadata.name is required']);
});

test('what is guarded is covered where an object is only looked at, and the object stays as it is', () => {
  const thing = source({ type: 'S3', bucket: 'b', accessKey: 'k', secretKey: 's' });
  assert.deepEqual(covered(thing, darkroom), source({ type: 'S3', bucket: 'b', accessKey: '<hidden>', secretKey: '<hidden>' }));
  assert.deepEqual(thing, source({ type: 'S3', bucket: 'b', accessKey: 'k', secretKey: 's' }));
  assert.deepEqual(covered(source({ type: 'WebFolder' }), darkroom), source({ type: 'WebFolder' }));
  assert.equal(covered('x', darkroom), 'x');
});

test('what is deprecated is shown only where something stands in it', () => {
  const fields = fieldsOf(crd('webservers.my.domain'));
  const names = (thing: Thing) => partsOf(fields, webServer, thing, {}).flatMap(({ entries }) => entries.map((entry) => ('node' in entry ? entry.node.key : '')));
  assert.deepEqual(names({ spec: {} }), ['image', 'replicas', 'nodePort']);
  assert.deepEqual(names({ spec: { foo: 'x' } }), ['image', 'replicas', 'nodePort', 'foo']);
});

test('the cache has its field as soon as the schema knows it', () => {
  const known = structuredClone(schema);
  const spec = known.properties?.spec?.properties;
  assert.ok(spec);
  spec.cache = { type: 'object', properties: { ttlSeconds: { type: 'integer', format: 'int64', minimum: 0, maximum: 31_536_000 } } };
  const thing = source({ type: 'WebFolder', baseUrl: 'https://a' }, { cache: { ttlSeconds: -1 } });
  const fields = partsOf(fieldsOf(known), darkroom, thing, {}).flatMap(({ entries }) => entries.map((entry) => ('node' in entry ? pathText(entry.node.path) : '')));
  assert.ok(fields.includes('spec.cache.ttlSeconds') && !fields.includes('spec.cache'));
  assert.deepEqual(judge(thing, { schema: known, layout: darkroom, isNew: true }, {}).map(({ path, message }) => `${pathText(path)}: ${message}`), ['spec.cache.ttlSeconds: must be at least 0']);
});

test('every path of a layout is a field of its kind', () => {
  for (const [layout, name] of [[darkroom, 'darkrooms.deployments.example.com'], [webServer, 'webservers.my.domain'], [configMonitor, 'configmonitors.magalix.com']] as const) {
    const schema = crd(name);
    const known = (path: string): boolean => path.split('.').reduce<JsonSchema | undefined>((at, part) => at?.properties?.[part], schema) !== undefined;
    const fields = [...layout.groups.flatMap(({ fields }) => fields), ...Object.keys(layout.looks), ...layout.retired];
    for (const path of fields.filter((path) => !path.startsWith('@') && !path.startsWith('spec.cache'))) assert.ok(known(path), `${name} ${path}`);
  }
});

test('a kind without a layout shows all of its fields', () => {
  const layout = layoutOf({ group: 'example.com', plural: 'things' }, 'Thing');
  assert.deepEqual(layout, { ...plainLayout('Thing'), when: layout.when, clean: layout.clean, check: layout.check });
  const [part] = partsOf(fieldsOf(schema), layout, { spec: {} }, {});
  assert.deepEqual(part?.entries.map((entry) => ('node' in entry ? entry.node.key : '')), ['source', 'subDomains', 'cache', 'image', 'version']);
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
