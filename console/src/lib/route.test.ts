import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHORD, fit, press } from './chords';
import { match, params } from './route';

const entries = ['/', '/sources/:namespace/:name', '/sources/:namespace/new', '/sources', '/kinds/:group/:version/:plural'].map((path) => ({ path }));

test('an address names one page, and words win over parameters', () => {
  assert.deepEqual(match(entries, '/sources/default/x'), { entry: entries[1], params: { namespace: 'default', name: 'x' } });
  assert.deepEqual(match(entries, '/sources/default/new')?.entry, entries[2]);
  assert.equal(match(entries, '')?.entry, entries[0]);
  assert.equal(match(entries, '/sources/')?.entry, entries[3]);
  assert.equal(match(entries, '/nothing/here'), null);
});

test('parameters are decoded, and what cannot be decoded is no page', () => {
  assert.deepEqual(params('/x/:y', '/x/a%2Fb%20c'), { y: 'a/b c' });
  assert.equal(params('/x/:y', '/x/%E0%A4%A'), null);
});

const actions = [{ id: 'sources', keys: 'g s' }, { id: 'engine', keys: 'g e' }, { id: 'search', keys: '/' }, { id: 'edit', keys: 'e' }, { id: 'none' }];
const none = { keys: [], at: 0 };

test('single keys act at once and chords after their second key', () => {
  assert.equal(press(none, '/', 0, actions).run, actions[2]);
  const first = press(none, 'g', 1000, actions);
  assert.deepEqual([first.run, first.pressed, first.used], [null, { keys: ['g'], at: 1000 }, true]);
  assert.equal(press(first.pressed, 'e', 1200, actions).run, actions[1]);
});

test('a chord that is too slow is forgotten, and its second key means what it means alone', () => {
  const { pressed } = press(none, 'g', 0, actions);
  assert.equal(press(pressed, 'e', CHORD + 1, actions).run, actions[3]);
  assert.equal(press(pressed, '/', 10, actions).run, actions[2]);
});

test('a key that means nothing is left to the browser', () => {
  assert.deepEqual(press(none, 'x', 0, actions), { run: null, pressed: none, used: false });
});

test('the palette finds by words in any order and by first letters, the nearest first', () => {
  assert.equal(fit('Reconciler darkroom', 'zzz'), null);
  assert.notEqual(fit('Reconciler darkroom', 'dark rec'), null);
  assert.notEqual(fit('Plan a swap', 'pas'), null);
  assert.ok(fit('darkroom', 'dark')! < fit('Reconciler darkroom', 'dark')!);
});
