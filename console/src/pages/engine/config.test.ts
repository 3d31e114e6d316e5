import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formSchema, pathInConfig, swapPatch } from './config';

test('a swap names what changes and nothing else', () => {
  const spec = { module: 'a-1', config: { suffix: 'x', image: 'y' } };
  assert.deepEqual(swapPatch(spec, { module: 'a-2', isEdited: false }), { spec: { module: 'a-2' } });
  assert.deepEqual(swapPatch(spec, { module: 'a-1', config: { suffix: 'z' }, isEdited: true }), { spec: { config: { image: null, suffix: 'z' } } });
  assert.deepEqual(swapPatch(spec, { module: 'a-1', isEdited: true }), { spec: { config: null } });
  assert.deepEqual(swapPatch({ module: 'a-1' }, { module: 'a-1', config: {}, isEdited: true }), { spec: {} });
});

test('the field of a refusal leads to its place in the config', () => {
  assert.deepEqual(pathInConfig('spec.config.hosts[1].name'), ['hosts', 1, 'name']);
  assert.deepEqual(pathInConfig('config.suffix'), ['suffix']);
  assert.deepEqual(pathInConfig('spec.config'), []);
  assert.equal(pathInConfig('spec.module'), null);
  assert.equal(pathInConfig('spec.configuration.x'), null);
});

test('a keyword of a schema that is null counts as absent', () => {
  assert.deepEqual(formSchema({ properties: { a: { type: 'string', enum: null }, b: null } }), { properties: { a: { type: 'string' } } });
  assert.equal(formSchema(null), null);
});
