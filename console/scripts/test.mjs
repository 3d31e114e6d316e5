// Runs the tests of pure functions: src/**/*.test.ts, bundled by esbuild, with Node's own runner.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from 'node:test';
import { dot } from 'node:test/reporters';
import * as esbuild from 'esbuild';

const outdir = mkdtempSync(join(tmpdir(), 'pintle-console-'));
const { metafile } = await esbuild.build({
  entryPoints: ['src/**/*.test.ts'],
  outdir,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  metafile: true,
  format: 'esm',
  // As for the browser, so that packages give what the pages get.
  platform: 'neutral',
  mainFields: ['module', 'main'],
  external: ['node:*'],
  target: 'node20',
});
const files = Object.keys(metafile.outputs);
if (files.length === 0) throw new Error('there are no tests');
run({ files, concurrency: true })
  .on('test:fail', () => (process.exitCode = 1))
  .on('end', () => rmSync(outdir, { recursive: true }))
  .compose(dot).pipe(process.stdout);
