import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration } from './age';
import { chipsOf } from './chips';
import { linesOf } from './diff-model';
import { ordered } from './table';
import { rangeOf } from './windowed';

test('of ten thousand rows only those on the screen and a few around it are drawn', () => {
  assert.deepEqual(rangeOf(0, 800, 40, 10_000), { first: 0, end: 28 });
  assert.deepEqual(rangeOf(200_000, 200_800, 40, 10_000), { first: 4992, end: 5028 });
  assert.deepEqual(rangeOf(399_600, 400_400, 40, 10_000), { first: 9982, end: 10_000 });
  assert.deepEqual(rangeOf(-900, -100, 40, 10_000), { first: 0, end: 6 }, 'below the screen');
  assert.deepEqual(rangeOf(0, 800, 40, 0), { first: 0, end: 0 });
});

test('durations are as kubectl says them', () => {
  const of = (seconds: number) => duration(seconds * 1000);
  assert.deepEqual([-3, 4, 5, 119, 120, 7199, 7200, 172_799, 172_800, 86_400 * 800].map(of), ['now', 'now', '5s', '119s', '2m', '119m', '2h', '47h', '2d', '2y']);
});

test('what is pasted becomes a chip a word', () => {
  assert.deepEqual(chipsOf(' one, two\nthree,,'), ['one', 'two', 'three']);
  assert.deepEqual(chipsOf(' '), []);
});

test('a unified diff keeps its lines, and loses the names of its files', () => {
  const lines = linesOf('--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-- old\n+new\n+more\n\\ No newline at end of file\n');
  assert.deepEqual(lines.map(({ kind, text }) => [kind, text]), [['hunk', '@@ -1,2 +1,2 @@'], ['same', 'same'], ['del', '- old'], ['add', 'new'], ['add', 'more']]);
  assert.deepEqual(linesOf(''), []);
});

test('rows are sorted by the column that was asked for, and stay as they are without one', () => {
  const columns = [{ key: 'n', title: 'N', cell: String, sort: (one: number, other: number) => one - other }, { key: 'x', title: 'X', cell: String }];
  assert.deepEqual(ordered([2, 3, 1], columns, { key: 'n', down: true }), [3, 2, 1]);
  assert.deepEqual(ordered([2, 3, 1], columns, { key: 'x', down: true }), [2, 3, 1]);
  assert.deepEqual(ordered([2, 3, 1], columns, undefined), [2, 3, 1]);
});
