import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readProblem } from './api';

test('a problem is read from problem+json, and made up where a proxy answered HTML', async () => {
  const told = await readProblem(new Response('{"title":"T","status":422,"detail":"D","causes":[{"field":"spec.x","message":"m","reason":"r"},7]}', { status: 422, headers: { 'retry-after': '3' } }));
  assert.deepEqual([told.title, told.detail, told.details, told.causes.length, told.retryAfter], ['T', 'D', 'D', 1, 3]);
  const made = await readProblem(new Response('<html>', { status: 502 }));
  assert.deepEqual([made.status, made.causes], [502, []]);
});
