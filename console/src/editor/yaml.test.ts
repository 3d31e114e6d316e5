import assert from 'node:assert/strict';
import { test } from 'node:test';
import { print, read } from './yaml';

test('what is printed reads back as the same value', () => {
  const value = { a: ['x', 'no', '1', 'a: b', '', 'two\nlines\n'], b: { c: null, d: [{ e: 1 }, {}] } };
  assert.deepEqual(read(print(value)).value, value);
  assert.equal(print({ items: [{ a: 1 }] }), 'items:\n- a: 1\n');
  for (const text of ['a\r\nb', '\r', '  a\n b', '\ufeffa', '\n', '- a', '#a', 'null', '1']) assert.deepEqual([read(print(text)).value, read(print([{ a: text }])).value], [text, [{ a: text }]]);
});

test('a problem is told with its line, and no value is made up', () => {
  const { value, problems } = read('a: 1\nb: [1,\nc: "x\n');
  assert.equal(value, undefined);
  assert.ok(problems.length > 0 && problems.every(({ line }) => line >= 2), JSON.stringify(problems));
});

test('a key that stands twice is a problem', () => {
  assert.deepEqual(read('a: 1\nb: 2\na: 3\n').problems.map(({ line }) => line), [3]);
});

test('a field has a line, and what is not there has that of what is around it', () => {
  const { lineOf } = read('spec:\n  source:\n    type: S3\n  subDomains:\n  - one\n  - two\n');
  assert.equal(lineOf(['spec', 'source', 'type']), 3);
  assert.equal(lineOf(['spec', 'subDomains', 1]), 6);
  assert.equal(lineOf(['spec', 'source', 'bucket']), 2);
  assert.equal(lineOf(['status']), 1);
});

test('aliases that multiply are refused', () => {
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]', ...'bcdefg'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefg'[at]}`).join(',')}]`)].join('\n');
  assert.match(read(bomb).problems[0]?.message ?? '', /alias/i);
});
