import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import type { Problem } from '../../lib/api';
import type { ViewSpec } from '../../lib/kubernetes';
import { type Manifest, manifestDifferences, manifestIn, notGranted } from './manifest';
import { bytes, count, grantLines, isNamedBy, enumeration, nameFromFile, nameProblem, shortDigest, uploadHelp, whoReads } from './words';

test('sizes, digests and counts are short', () => {
  assert.equal(bytes(800), '800 bytes');
  assert.equal(bytes(312044), '305 KiB');
  assert.equal(bytes(1572864), '1.5 MiB');
  assert.equal(shortDigest('sha256:0123456789abcdef'), '0123456789ab');
  assert.equal(count(1, 'root'), '1 root');
  assert.equal(count(10000, 'root'), '10,000 roots');
  assert.equal(enumeration(['a', 'b', 'c']), 'a, b and c');
});

test('a message names a child by kind and whole name', () => {
  const child = { kind: 'Deployment', name: 'shop', namespace: 'default' };
  assert.ok(isNamedBy('Deployment shop: 0 of 1 replicas are ready', child));
  assert.ok(isNamedBy('waits for deployment/shop.', child));
  assert.ok(isNamedBy('Deployment default/shop is not ready', child));
  assert.ok(!isNamedBy('Deployment shop-images: 0 of 1', child));
  assert.ok(!isNamedBy('Deployment shop.example is', child));
  assert.ok(!isNamedBy('StatefulDeployment shop', child));
});

test('grants are told a line each', () => {
  const lines = grantLines({ children: [{ apiVersion: 'apps/v1', kinds: ['Deployment'] }], needs: [{ apiVersion: 'v1', kinds: ['ConfigMap'], scope: 'All' }], evictions: true });
  assert.deepEqual(lines.map(({ what, kinds, where }) => `${what} ${kinds.join()} ${where}`), ["May create Deployment (apps/v1) in the root's namespace", 'May see ConfigMap in all namespaces', 'May evict Pod respecting disruption budgets']);
});

test('of each access that a View may have it is told in whose name the backing kind is read', () => {
  const installed = readFileSync('../deploy/install.yaml', 'utf8').split(/^---$/m).map((text): any => parse(text));
  const { spec } = installed.find((one) => one?.metadata?.name === 'views.pintle.dev');
  const known: NonNullable<ViewSpec['access']>[] = spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.access.enum;
  assert.deepEqual(known.map((access) => `${access}: ${whoReads({ access })}`), ['ViewAndBacking: the caller', 'View: the gateway']);
  assert.equal(whoReads({}), 'the caller', 'the default');
});

test('a refused upload is told with what helps', () => {
  const problem = (reason: string | undefined, status = 422): Problem => ({ title: '', status, detail: '', details: '', causes: [], ...(reason ? { reason } : {}) });
  assert.match(uploadHelp(problem('ImportsNotAllowed')) ?? '', /imports nothing/);
  assert.match(uploadHelp(problem(undefined, 413)) ?? '', /smaller/);
  assert.equal(uploadHelp(problem('SomethingNew')), null);
});

test('the name of a Module comes from its manifest, or else from its file', () => {
  assert.equal(nameFromFile('C:\\guests\\Darkroom 0.2.wasm'), 'darkroom-0.2');
  assert.equal(nameFromFile('x.wasm', { name: 'darkroom', version: '0.3.0+build' }), 'darkroom-0.3.0-build');
  assert.equal(nameProblem('darkroom-0.2'), null);
  assert.match(nameProblem('-x') ?? '', /first and last/);
});

const manifest: Manifest = { name: 'darkroom', version: '0.1.0', reconciles: { apiVersion: 'e.com/v1', kind: 'Darkroom' }, children: [{ apiVersion: 'v1', kind: 'Secret' }, { apiVersion: 'apps/v1', kind: 'Deployment', observe: true }], configSchema: { properties: { suffix: { type: 'string' }, image: { type: 'string' } } } };

test('the differences of two manifests name rights, config and flags', () => {
  assert.deepEqual(manifestDifferences(manifest, manifest), []);
  const after: Manifest = { ...manifest, version: '0.2.0', children: [{ apiVersion: 'apps/v1', kind: 'Deployment' }, { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' }], finalizer: true, configSchema: { properties: { suffix: { type: 'integer' }, replicas: { type: 'integer' } }, required: ['replicas'] } };
  assert.deepEqual(manifestDifferences(manifest, after).map(({ kind, about, what, isRight }) => `${kind} ${about} ${what}${isRight ? ' !' : ''}`), [
    'new children PodDisruptionBudget (policy/v1) !',
    'gone children Secret',
    'other children Deployment (apps/v1) is no longer observed',
    'new finalizer cleans up before a root goes',
    'other config suffix: integer, was string',
    'new config replicas: integer, required',
    'gone config image',
  ]);
});

test('what the grants do not allow is named, and a value that is no manifest is none', () => {
  assert.deepEqual(notGranted(manifest, { children: [{ apiVersion: 'v1', kinds: ['Secret'] }] }), ['children: Deployment (apps/v1)']);
  assert.equal(manifestIn({ name: 'x' }), null);
  assert.equal(manifestIn(null), null);
});
