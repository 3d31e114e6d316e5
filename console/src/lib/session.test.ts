import assert from 'node:assert/strict';
import { test } from 'node:test';
import { watchParameter } from './hub';
import { cleanToken, secretOf } from './session';

test('a token may be pasted with what stood around it', () => {
  assert.equal(cleanToken('  Bearer abc.d\nef.ghi '), 'abc.def.ghi');
  assert.equal(cleanToken('"abc"'), 'abc');
  assert.equal(cleanToken(' http://127.0.0.1:4711/console/#abc\n'), 'abc');
});

test('only what looks like the secret of a console is sent as one', () => {
  const secret = 'A'.repeat(43);
  assert.equal(secretOf(`#${secret}`), secret);
  assert.deepEqual(['', '#', '#short', `#${secret}/x`, `#${'x'.repeat(200)}`].map(secretOf), [null, null, null, null, null]);
});

test('a watch is said as the stream wants it', () => {
  const kind = { group: 'my.domain', version: 'v1', plural: 'webservers' };
  assert.equal(watchParameter({ ...kind, namespace: 'a', fields: ['spec.x', 'spec.y'] }, '7'), 'my.domain/v1/webservers;namespace=a;resourceVersion=7;fields=spec.x,spec.y');
  assert.equal(watchParameter({ ...kind, name: 'n' }, null), 'my.domain/v1/webservers;name=n;whole=true');
});
