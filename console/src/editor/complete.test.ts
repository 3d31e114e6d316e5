import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { JsonSchema } from '../lib/kubernetes';
import { pathAbove, suggest } from './complete';

function crd(name: string): JsonSchema {
  const read = parse(readFileSync(`../deploy/crds/${name}.yaml`, 'utf8')) as { spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] } };
  const schema = read.spec.versions[0]?.schema.openAPIV3Schema;
  assert.ok(schema, name);
  return schema;
}

const darkroom = crd('darkrooms.deployments.example.com');
const monitor = crd('configmonitors.magalix.com');

/** The labels at the bar in a text. */
const at = (text: string, schema: JsonSchema): string[] | undefined => {
  const offset = text.indexOf('|');
  return suggest(text.replace('|', ''), offset, schema)?.options.map(({ label }) => label);
};

test('keys are those of the place where the cursor is', () => {
  assert.ok(at('|', darkroom)?.includes('spec'));
  assert.deepEqual(at('spec:\n  so|', darkroom)?.sort(), ['cache', 'image', 'source', 'subDomains', 'version']);
  assert.ok(at('spec:\n  version: x\n  source:\n    type: S3\n    b|', darkroom)?.includes('bucket'));
  assert.ok(at('spec:\n  source:\n    type: S3\n  |', darkroom)?.includes('subDomains'));
});

test('values are those of the enum, and a boolean is either', () => {
  assert.deepEqual(at('spec:\n  source:\n    type: |', darkroom), ['WebFolder', 'S3']);
  assert.deepEqual(at('spec:\n  evictUnowned: |', monitor), ['true', 'false']);
  assert.deepEqual(at('spec:\n  version: |', darkroom), ['0.4.0']);
});

test('lists are entered, whether they are indented or not', () => {
  for (const indent of ['', '  ']) {
    const list = `spec:\n  podSelector:\n    matchExpressions:\n    ${indent}- key: a\n      ${indent}`;
    assert.deepEqual(at(`${list}|`, monitor), ['key', 'operator', 'values'], JSON.stringify(indent));
    assert.deepEqual(at(`${list}operator: |`, monitor), ['In', 'NotIn', 'Exists', 'DoesNotExist']);
    assert.deepEqual(at(`${list}operator: In\n    ${indent}- |`, monitor), ['key', 'operator', 'values']);
  }
  assert.deepEqual(pathAbove(['a:', '- b:', '    c: 1'], 4, 0), ['a', 0, 'b']);
});

test('where nothing is known nothing is offered, and no text does harm', () => {
  assert.equal(at('spec: {a: b|', darkroom), undefined);
  assert.deepEqual(at('nothing:\n  at:\n    all|', darkroom), []);
  for (const odd of ['- - - |', ':::|', '"a": |', '\t|', `${' '.repeat(9999)}|`, `${'a:\n'.repeat(9999)}|`]) assert.doesNotThrow(() => at(odd, darkroom), odd.slice(0, 9));
});
