import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Upload } from './upload-run';

test('a file that is larger than any module may be is refused before it is read', async (context) => {
  const most = Number(/MODULE_BYTES_MAX: usize = (\d+) << 20/.exec(readFileSync('../host/engine/src/config.rs', 'utf8'))?.[1]) * 1024 * 1024;
  const sent = context.mock.method(globalThis, 'fetch', () => Promise.resolve(Response.json({ manifest: null })));
  const read = context.mock.fn(() => Promise.resolve(new ArrayBuffer(0)));
  const upload = new Upload();
  const take = (size: number) => upload.take({ name: 'a.wasm', size, arrayBuffer: read } as unknown as File);
  await take(most + 1);
  assert.deepEqual([upload.state.value.problem?.status, read.mock.callCount(), sent.mock.callCount()], [413, 0, 0]);
  await take(most);
  assert.deepEqual([upload.state.value.phase, read.mock.callCount(), sent.mock.callCount()], ['checked', 1, 1]);
});
