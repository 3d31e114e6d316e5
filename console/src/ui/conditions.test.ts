import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Condition, Ready } from '../api/generated';
import type { K8sObject } from '../lib/kubernetes';
import { PASSING, saidOf, statefulOf, stateOf } from './conditions';

const ready = (status: Ready['status'], more: Partial<Ready> = {}): Ready => ({ status, reason: 'R', message: 'm', current: true, since: null, ...more });
const row = { stalled: false, reconciling: false, suspended: false, deleting: false };

test('a state is what the conditions of the present generation say', () => {
  const label = (given: Parameters<typeof stateOf>[0]) => stateOf(given).label;
  assert.equal(label({ ...row, ready: ready('True') }), 'Ready');
  assert.equal(label({ ...row, ready: ready('True', { current: false }) }), 'In progress', 'true of an older generation');
  assert.equal(label({ ...row, ready: ready('False'), stalled: true }), 'Failed');
  assert.equal(label({ ...row, ready: ready('False', { reason: 'ChildNotReady' }), reconciling: true }), 'In progress');
  assert.equal(label({ ...row, ready: ready('False', { reason: 'DomainTaken' }), reconciling: true }), 'Not ready', 'trying again does not help');
  assert.equal(label({ ...row, ready: ready('False') }), 'Not ready');
  assert.equal(label({ ...row, ready: ready(null, { current: false }) }), 'Unknown');
  assert.equal(label({ ...row, ready: ready('True'), deleting: true }), 'Deleting');
  assert.equal(label({ ...row, ready: ready('True'), suspended: true }), 'Suspended');
});

test('a Reconciler whose roots fail does not look as if all were well', () => {
  const label = (more: Partial<Parameters<typeof stateOf>[0]>) => stateOf({ ...row, ready: ready('True'), ...more }).label;
  assert.deepEqual([label({ failing: 0 }), label({ failing: 3 }), label({ failing: 3, suspended: true }), label({ failing: 3, stalled: true })], ['Ready', 'Roots failing', 'Suspended', 'Failed']);
});

test('failing comes before waiting, and ready last', () => {
  const states = [{ ...row, ready: ready('True') }, { ...row, ready: ready('False', { reason: 'Progressing' }), reconciling: true }, { ...row, ready: ready('False'), reconciling: true }, { ...row, ready: ready('False'), stalled: true }];
  assert.deepEqual(states.map(stateOf).sort((one, other) => one.rank - other.rank).map(({ label }) => label), ['Failed', 'Not ready', 'In progress', 'Ready']);
});

test('the reasons that pass by themselves are reasons of the host', () => {
  const page = readFileSync('../docs/reasons.md', 'utf8');
  assert.deepEqual([...PASSING].filter((reason) => !page.includes(`| \`${reason}\` |`)), []);
});

const condition = (type: string, status: Condition['status'], more: Partial<Condition> = {}): Condition => ({ type, status, reason: 'Why', message: 'because', lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 2, ...more });
const object = (conditions: unknown, generation = 2): K8sObject => ({ apiVersion: 'a/v1', kind: 'A', metadata: { name: 'a', uid: 'u', resourceVersion: '7', generation, creationTimestamp: '2026-01-01T00:00:00Z' }, status: { conditions } as never });

test('an object has the state that its row has', () => {
  assert.equal(stateOf(statefulOf(object([condition('Ready', 'True')]))).label, 'Ready');
  assert.equal(stateOf(statefulOf(object([condition('Ready', 'True')], 3))).label, 'In progress');
  assert.equal(stateOf(statefulOf(object([condition('Ready', 'False'), condition('Stalled', 'True')]))).label, 'Failed');
  assert.equal(stateOf(statefulOf(object([]))).label, 'Unknown');
});

test('Ready is of the present generation if it says so, or else the status, or else neither', () => {
  const isCurrent = (ofReady: number | undefined, ofStatus: number | undefined) => {
    const { observedGeneration: _, ...plain } = condition('Ready', 'True');
    return statefulOf({ ...object([]), status: { conditions: [ofReady === undefined ? plain : { ...plain, observedGeneration: ofReady }], ...(ofStatus === undefined ? {} : { observedGeneration: ofStatus }) } as never }).ready.current;
  };
  assert.deepEqual([isCurrent(2, 1), isCurrent(1, 2), isCurrent(undefined, 2), isCurrent(undefined, 1), isCurrent(undefined, undefined)], [true, false, true, false, true]);
  assert.equal(statefulOf(object([])).ready.current, false);
});

test("a root is suspended by its annotation, as the host reads it, and what is the host's own by its field", () => {
  const isSuspended = (apiVersion: string, suspend: boolean, annotation?: string) => {
    const { metadata, ...rest } = object([]);
    return statefulOf({ ...rest, apiVersion, metadata: annotation === undefined ? metadata : { ...metadata, annotations: { 'pintle.dev/suspend': annotation } }, spec: { suspend } }).suspended;
  };
  assert.deepEqual(['true', 'yes', 'false', '', undefined].map((annotation) => isSuspended('my.domain/v1', false, annotation)), [true, true, false, false, false]);
  assert.equal(isSuspended('my.domain/v1', true), false, 'a field of that name is the kind\'s own');
  assert.deepEqual([true, false].map((suspend) => isSuspended('pintle.dev/v1alpha1', suspend, 'true')), [true, false]);
});

test('a condition is good or bad by what its type means, and not by its status alone', () => {
  const tone = (type: string, status: Condition['status'], reason = 'Why') => saidOf(object([condition(type, status, { reason })]))[0]?.tone;
  assert.deepEqual([tone('Ready', 'True'), tone('Ready', 'False'), tone('Registered', 'True'), tone('RootsReady', 'False', 'Progressing')], ['ok', 'bad', 'ok', 'info']);
  assert.deepEqual([tone('Stalled', 'True'), tone('DomainConflict', 'False'), tone('ConfigMapNotFound', 'True'), tone('Reconciling', 'True')], ['bad', 'muted', 'bad', 'info']);
  assert.deepEqual([tone('Anything', 'Unknown'), tone('DriftUnwatched', 'True')], ['muted', 'muted'], 'which way round it is meant, nobody can tell');
});

test('what is in the way stands on top, Ready before what explains it, and a condition of an older generation says so', () => {
  const said = saidOf(object([condition('Degraded', 'False'), condition('DomainConflict', 'True', { observedGeneration: 1 }), condition('Reconciling', 'True'), condition('Ready', 'False')]));
  assert.deepEqual(said.map(({ type, words }) => `${type}: ${words}`), ['Ready: Not ready', 'DomainConflict: Domain Conflict', 'Reconciling: Being worked on', 'Degraded: Nothing is degraded']);
  assert.deepEqual(said.map(({ isOld }) => isOld), [false, true, false, false]);
});

test('conditions of any shape, and very many of them, do no harm', () => {
  for (const odd of [undefined, null, 'x', 5, {}, [null, 5, 'x', {}, { type: 1 }]]) assert.deepEqual(saidOf(object(odd)), []);
  for (const type of ['constructor', 'Ready']) assert.match(saidOf(object([{ type, status: 'toString' }]))[0]?.words ?? '', /: not known$/);
  assert.equal(saidOf(object(Array.from({ length: 10_000 }, (_, at) => condition(`C${at}`, 'True')))).length, 10_000);
});
