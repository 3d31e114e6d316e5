// Builds the pages into dist/, whose files the host embeds. With --check it writes nothing, and fails when what is committed is not what the
// sources make. With --watch it builds anew whenever a source changes: `pintle console --assets console/dist`.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, parse, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import * as esbuild from 'esbuild';

const console_ = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(console_, 'dist');

/** The most that a first visit may load before it shows anything, without the editor: bytes of gzip. */
const FIRST_LOAD_MAX = 60 * 1024;

/** What every visit loads. Whoever comes later may count on it. */
const FIRST = join(console_, 'src/console.tsx');

/** esbuild makes a chunk for each set of entries that share a module: a dozen small files for the first visit. So what is loaded later says
 * that it needs all that was loaded first, as it does: all of that is then shared by the same entries, and stands in one file. */
const together = {
  name: 'together',
  setup: (build) => build.onLoad({ filter: /\/(pages\/later|editor\/editor|editor\/yaml)\.tsx?$/ }, ({ path }) => (
    { contents: `${readFileSync(path, 'utf8')}\nimport ${JSON.stringify(FIRST)};\n`, loader: path.endsWith('x') ? 'tsx' : 'ts' }
  )),
};

/** What esbuild is asked for. The host serves assets/ below a hash of all files, so that their names stay what they are. */
const options = {
  absWorkingDir: console_,
  entryPoints: { main: 'src/main.tsx', head: 'src/head.ts', worker: 'src/worker.ts', style: 'src/style.css' },
  outdir: 'dist/assets',
  entryNames: '[name]',
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  legalComments: 'none',
  metafile: true,
  write: false,
  plugins: [together],
};

/** What esbuild made, with names that stay: those of chunks have a hash. A chunk is called after its entry, or after the last of its sources,
 * which imports the others. */
function named({ metafile, outputFiles }) {
  const chunks = Object.entries(metafile.outputs).filter(([path]) => /-[0-9A-Z]{8}\.js$/.test(path));
  const names = chunks.map(([path, { entryPoint, inputs }]) => [basename(path), `${parse(entryPoint ?? Object.keys(inputs).at(-1)).name}.js`]);
  const rename = (text) => names.reduce((text, [from, to]) => text.replaceAll(from, to), text);
  const files = outputFiles.map(({ path, text }) => ({ path: rename(path), contents: rename(text) }));
  return { metafile: JSON.parse(rename(JSON.stringify(metafile))), outputFiles: files };
}

/** The name of the file that an entry became. */
function made(result, entry) {
  const found = Object.entries(result.metafile.outputs).find(([, output]) => output.entryPoint === entry);
  if (!found) throw new Error(`esbuild made nothing of ${entry}`);
  return relative('dist', found[0]);
}

/** The files of dist/, by their path in it. */
function files(result) {
  const found = new Map(result.outputFiles.map((file) => [relative(dist, file.path), Buffer.from(file.contents)]));
  const inPage = (entry) => {
    const path = made(result, entry);
    const text = found.get(path).toString().trim();
    found.delete(path);
    return text;
  };
  const page = readFileSync(join(console_, 'src/index.html'), 'utf8')
    .replaceAll(/\{\{inline ([\w./]+)\}\}/g, (_, entry) => inPage(entry))
    .replaceAll(/\{\{([\w./]+)\}\}/g, (_, entry) => `/console/${made(result, entry)}`);
  // A browser that reads the page asks for all of it at once, and not for what each file imports when it has the file.
  const ahead = [...imported(result, ['src/main.tsx'])].slice(1).map((path) => `    <link rel="modulepreload" href="/console/${relative('dist', path)}" />\n`);
  found.set('index.html', Buffer.from(page.replace('  </head>', `${ahead.join('')}  </head>`)));
  found.set('LICENSES.txt', Buffer.from(licences(result)));
  return new Map([...found].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** The licences of what is in the bundle: each asks to be named beside the code. */
function licences(result) {
  const packages = new Set();
  for (const input of Object.keys(result.metafile.inputs)) {
    const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (name) packages.add(name);
  }
  return [...packages].sort().map((name) => {
    const folder = join(console_, 'node_modules', name);
    const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), 'utf8').trim() : ''}\n`;
  }).join(`\n${'-'.repeat(80)}\n\n`);
}

/** The files of these entries, and whatever they import at once. */
function imported(result, entries) {
  const needed = new Set(entries.map((entry) => `dist/${made(result, entry)}`));
  for (const file of needed) {
    for (const { path, kind } of result.metafile.outputs[file].imports) if (kind === 'import-statement') needed.add(path);
  }
  return needed;
}

/** What a first visit loads: the page, what it names, and whatever these import at once. */
function firstLoad(result, all) {
  const needed = imported(result, ['src/main.tsx', 'src/style.css']);
  const size = (path) => gzipSync(all.get(path), { level: 9 }).length;
  return ['index.html', ...[...needed].map((path) => relative('dist', path))].reduce((sum, path) => sum + size(path), 0);
}

function put(all) {
  rmSync(dist, { recursive: true, force: true });
  for (const [path, bytes] of all) {
    mkdirSync(dirname(join(dist, path)), { recursive: true });
    writeFileSync(join(dist, path), bytes);
  }
}

/** The files of dist/ that are not as they should be. */
function stale(all) {
  const there = existsSync(dist) ? readdirSync(dist, { recursive: true, withFileTypes: true }) : [];
  const found = there.filter((file) => file.isFile()).map((file) => relative(dist, join(file.parentPath ?? file.path, file.name)));
  const differ = [...all].filter(([path, bytes]) => !existsSync(join(dist, path)) || !readFileSync(join(dist, path)).equals(bytes));
  return [...differ.map(([path]) => path), ...found.filter((path) => !all.has(path))].map((path) => `console/dist/${path}`);
}

function finish(built, isCheck) {
  const result = named(built);
  const all = files(result);
  const size = firstLoad(result, all);
  if (size > FIRST_LOAD_MAX) throw new Error(`a first visit loads ${size} bytes; it may load ${FIRST_LOAD_MAX}`);
  if (!isCheck) return put(all), console.log(`console/dist: a first visit loads ${size} bytes`);
  const wrong = stale(all);
  if (wrong.length > 0) throw new Error(`stale: ${wrong.join(', ')}; run: cargo xtask console`);
}

const flags = new Set(process.argv.slice(2));
try {
  if (flags.has('--watch')) {
    const again = { name: 'again', setup: (build) => build.onEnd((result) => result.errors.length > 0 || finish(result, false)) };
    await (await esbuild.context({ ...options, plugins: [together, again] })).watch();
  } else {
    finish(await esbuild.build(options), flags.has('--check'));
  }
} catch (error) {
  console.error(`error: ${error.message}`);
  process.exitCode = 1;
}
