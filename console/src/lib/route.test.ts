import assert from 'node:assert/strict';
import { test } from 'node:test';
import { match, params } from './route';

const entries = ['/', '/rooms/:namespace/new', '/rooms/:namespace/:name', '/rooms', '/kinds/:group/:version/:plural'].map((path) => ({ path }));

test('an address names the first page that fits', () => {
  assert.deepEqual(match(entries, '/rooms/default/x'), { entry: entries[2], params: { namespace: 'default', name: 'x' } });
  assert.deepEqual(match(entries, '/rooms/default/new')?.entry, entries[1]);
  assert.equal(match(entries, '')?.entry, entries[0]);
  assert.equal(match(entries, '/rooms/')?.entry, entries[3]);
  assert.equal(match(entries, '/nothing/here'), null);
});

test('parameters are decoded, and what cannot be decoded is no page', () => {
  assert.deepEqual(params('/x/:y', '/x/a%2Fb%20c'), { y: 'a/b c' });
  assert.equal(params('/x/:y', '/x/%E0%A4%A'), null);
});
