import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fit } from './fit';

test('the palette finds by words in any order and by first letters, the nearest first', () => {
  assert.equal(fit('Reconciler darkroom', 'zzz'), null);
  assert.notEqual(fit('Reconciler darkroom', 'dark rec'), null);
  assert.notEqual(fit('Plan a swap', 'pas'), null);
  assert.ok(fit('darkroom', 'dark')! < fit('Reconciler darkroom', 'dark')!);
});
