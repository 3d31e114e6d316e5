import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { JsonSchema } from '../lib/kubernetes';
import { covered, partsOf, plainLayout, type Thing } from './layout';
import { configMonitor, darkroom, layoutOf } from './layouts';
import { fieldsOf } from './model';
import { pathText } from './path';

function crd(name: string): JsonSchema {
  const read = parse(readFileSync(`../deploy/crds/${name}.yaml`, 'utf8')) as { spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] } };
  const schema = read.spec.versions[0]?.schema.openAPIV3Schema;
  assert.ok(schema, name);
  return schema;
}

const schema = crd('darkrooms.deployments.example.com');
const source = (source: Thing): Thing => ({ metadata: { name: 'a' }, spec: { source, subDomains: ['a'] } });
const shown = (thing: Thing, way = 'keys') => partsOf(fieldsOf(schema), darkroom, thing, { '@credentials': way })
  .flatMap(({ entries }) => entries.map((entry) => ('node' in entry ? pathText(entry.node.path) : entry.choice)));

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
  assert.deepEqual(darkroom.clean(source({ type: 'S3' }), { '@credentials': 'secret' }), source({ type: 'S3', credentialsSecretRef: {} }), 'the API server misses its name');
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
  const names = (thing: Thing) => partsOf(fields, plainLayout('WebServer'), thing, {}).flatMap(({ entries }) => entries.map((entry) => ('node' in entry ? entry.node.key : '')));
  assert.deepEqual(names({ spec: {} }), ['image', 'nodePort', 'replicas']);
  assert.deepEqual(names({ spec: { foo: 'x' } }), ['image', 'foo', 'nodePort', 'replicas']);
});

test('every path of a layout is a field of its kind', () => {
  for (const [layout, name] of [[darkroom, 'darkrooms.deployments.example.com'], [configMonitor, 'configmonitors.magalix.com']] as const) {
    const schema = crd(name);
    const known = (path: string): boolean => path.split('.').reduce<JsonSchema | undefined>((at, part) => at?.properties?.[part], schema) !== undefined;
    const fields = [...layout.groups.flatMap(({ fields }) => fields), ...Object.keys(layout.looks), ...layout.retired];
    for (const path of fields.filter((path) => !path.startsWith('@'))) assert.ok(known(path), `${name} ${path}`);
  }
});

test('a kind without a layout shows all of its fields', () => {
  const layout = layoutOf({ group: 'example.com', plural: 'things' }, 'Thing');
  assert.deepEqual(layout, { ...plainLayout('Thing'), when: layout.when, clean: layout.clean });
  const [part] = partsOf(fieldsOf(schema), layout, { spec: {} }, {});
  assert.deepEqual(part?.entries.map((entry) => ('node' in entry ? entry.node.key : '')), ['source', 'subDomains', 'cache', 'image', 'version']);
});
