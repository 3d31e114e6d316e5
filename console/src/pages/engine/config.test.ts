import assert from 'node:assert/strict';
import { test } from 'node:test';
import { beforeActive, formSchema, pathInConfig, swapPatch } from './config';

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

test('the module before is the last one that is another pair of module and config', () => {
  const pair = (module: string, since: string, suffix?: string) => ({ module, since, digest: 'sha256:0', ...(suffix === undefined ? {} : { config: { suffix } }) });
  const active = pair('b', '3', 'x');
  const name = (history: ReturnType<typeof pair>[]) => beforeActive({ active, history })?.since;
  assert.equal(name([active, pair('a', '1'), pair('a', '2')]), '2', 'whatever the order is');
  assert.equal(name([active, pair('b', '2', 'y')]), '2', 'another config is another pair');
  assert.equal(name([active]), undefined);
  assert.equal(beforeActive({}), undefined);
});

test('a keyword of a schema that is null counts as absent', () => {
  assert.deepEqual(formSchema({ properties: { a: { type: 'string', enum: null }, b: null } }), { properties: { a: { type: 'string' } } });
  assert.equal(formSchema(null), null);
});
