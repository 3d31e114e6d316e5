import assert from 'node:assert/strict';
import { test } from 'node:test';
import {  formSchema, pathInConfig, swapPatch, undoOf } from './config';

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

test('an undo is of what is wanted where that is not in force, and else of what is in force', () => {
  const pair = (module: string, suffix?: string) => ({ module, digest: 'sha256:0', ...(suffix === undefined ? {} : { config: { suffix } }) });
  const active = pair('b', 'x');
  const history = [pair('a', 'y'), pair('a')];
  assert.equal(undoOf(pair('b', 'x'), { active, history }), history[0], 'the latest of the history');
  assert.equal(undoOf(pair('c', 'x'), { active, history }), active, 'another module is wanted');
  assert.equal(undoOf(pair('b', 'z'), { active, history }), active, 'another config is wanted');
  assert.equal(undoOf(pair('c'), { active }), active, 'there is no history');
  assert.equal(undoOf(pair('b', 'x'), { active }), undefined);
  assert.equal(undoOf({ module: 'b', config: {} }, { active: pair('b'), history }), history[0], 'an empty config is none');
  assert.equal(undoOf(pair('b'), { history }), undefined, 'nothing was in force yet');
});

test('a keyword of a schema that is null counts as absent', () => {
  assert.deepEqual(formSchema({ properties: { a: { type: 'string', enum: null }, b: null } }), { properties: { a: { type: 'string' } } });
  assert.equal(formSchema(null), null);
});
