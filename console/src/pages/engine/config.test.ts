import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pathInConfig, swapPatch } from './config';
import { formSchema } from './config-schema';

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

test('a schema is made one that forms can show: references in place, null left out, and the rest without a type', () => {
  const schema = formSchema({
    type: 'object',
    properties: {
      suffix: { type: ['string', 'null'], description: 'The suffix.' },
      image: { anyOf: [{ $ref: '#/$defs/Image' }, { type: 'null' }], description: 'The image.' },
      odd: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
      tree: { $ref: '#/$defs/Tree' },
    },
    $defs: { Image: { type: 'object', properties: { name: { type: 'string' } } }, Tree: { type: 'object', properties: { next: { $ref: '#/$defs/Tree' } } } },
  });
  assert.deepEqual(schema?.properties?.suffix, { type: 'string', description: 'The suffix.' });
  assert.deepEqual(schema?.properties?.image, { type: 'object', properties: { name: { type: 'string' } }, description: 'The image.' });
  assert.deepEqual(schema?.properties?.odd, {});
  assert.equal(schema?.properties?.tree?.type, 'object');
  assert.equal(formSchema(null), null);
});
