// Runs the tests of pure functions: src/**/*.test.ts, bundled by esbuild, with Node's own runner.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as esbuild from 'esbuild';

const source = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src');
const tests = readdirSync(source, { recursive: true }).filter((file) => /\.test\.tsx?$/.test(file)).map((file) => join(source, file));
if (tests.length === 0) throw new Error('there are no tests');
const outdir = mkdtempSync(join(tmpdir(), 'pintle-console-'));
try {
  await esbuild.build({
    entryPoints: tests,
    outdir,
    outbase: source,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    // As for the browser, so that packages give what the pages get.
    platform: 'neutral',
    mainFields: ['module', 'main'],
    external: ['node:*'],
    target: 'node20',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    logLevel: 'warning',
  });
  const files = readdirSync(outdir, { recursive: true }).filter((file) => file.endsWith('.test.mjs')).map((file) => join(outdir, file));
  const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=dot', ...files], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  rmSync(outdir, { recursive: true, force: true });
}
