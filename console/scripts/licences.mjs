// Checks the licence of every package of package-lock.json, as deny.toml does for crates. What is in the pages may ask for no more than to
// be named; what only tests use may also be under the MPL, since nobody gets it.
import { readFileSync } from 'node:fs';

const ALLOWED = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD']);
const IN_TESTS = new Set([...ALLOWED, 'MPL-2.0']);

const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));
const listed = Object.entries(packages).filter(([path]) => path !== '');
if (listed.length === 0) throw new Error('package-lock.json names no packages');
const wrong = listed.filter(([, { license, dev }]) => !(dev ? IN_TESTS : ALLOWED).has(license));
for (const [path, { license }] of wrong) console.error(`error: ${path}: the licence ${license} is not allowed`);
process.exitCode = wrong.length > 0 ? 1 : 0;
