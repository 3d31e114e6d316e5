import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PlannedRoot, Summary, Verdict } from '../../api/generated';
import { consequence, countsOf, heard, IDLE, objectionsTo, shownRoots } from './plan-run';

const root = (name: string, verdict: Verdict, more: Partial<PlannedRoot> = {}): PlannedRoot => ({ root: { apiVersion: 'e.com/v1', kind: 'Darkroom', namespace: 'shop', name, uid: name }, verdict, failure: null, failsNow: null, hasAnswer: true, unknown: [], standingRefusals: [], note: null, children: [], patches: [], evictions: [], status: null, ...more });
const failure = { reason: 'Refused', message: 'no', path: null };
const message = (event: string, data: unknown) => ({ event, data: JSON.stringify(data) });

test('roots are gathered, and those not told count as unchanged until the summary says', () => {
  const running = { ...IDLE, phase: 'running' as const };
  const state = heard(running, [message('progress', { done: 5, total: 9 }), message('root', root('a', 'changed')), message('root', root('b', 'fails'))]);
  assert.deepEqual([state.done, state.total, state.roots.length, state.phase], [5, 9, 2, 'running']);
  assert.deepEqual(countsOf(state), { unchanged: 3, changed: 1, fails: 1, unknown: 0 });
  assert.equal(running.roots.length, 0);
  const summary = { roots: { total: 9, unchanged: 4, changed: 3, fails: 1, unknown: 1 } } as Summary;
  const done = heard(state, [message('summary', summary)]);
  assert.equal(done.phase, 'done');
  assert.deepEqual(countsOf(done), { unchanged: 4, changed: 3, fails: 1, unknown: 1 });
});

test('a problem in the stream ends the plan, and keeps what came before', () => {
  const state = heard(heard({ ...IDLE, phase: 'running' }, [message('root', root('a', 'changed'))]), [message('problem', { title: 'Forbidden', status: 403, detail: 'no', details: 'no', causes: [] })]);
  assert.deepEqual([state.phase, state.problem?.status, state.roots.length], ['failed', 403, 1]);
});

test('what fails comes first, and a search is of namespace and name', () => {
  const roots = [root('apple', 'changed'), root('pear', 'fails'), root('plum', 'unknown')];
  assert.deepEqual(shownRoots(roots, 'all', '').map((one) => one.root.name), ['pear', 'plum', 'apple']);
  assert.deepEqual(shownRoots(roots, 'changed', '').map((one) => one.root.name), ['apple']);
  assert.deepEqual(shownRoots(roots, 'all', 'SHOP/p').map((one) => one.root.name), ['pear', 'plum']);
});

test('a root that fails is counted and shown as failing alone, whatever its verdict is', () => {
  const roots = [root('apple', 'changed', { failure }), root('pear', 'unchanged', { failure }), root('plum', 'unknown')];
  assert.deepEqual(countsOf({ ...IDLE, done: 4, roots }), { unchanged: 1, changed: 0, fails: 2, unknown: 1 });
  const names = (verdict: Verdict) => shownRoots(roots, verdict, '').map((one) => one.root.name);
  assert.deepEqual([names('fails'), names('changed'), names('unknown')], [['apple', 'pear'], [], ['plum']]);
});

test('a swap is asked for twice where roots newly fail, where that cannot be told, and after a plan of some roots', () => {
  const of = (roots: PlannedRoot[], counts: Partial<Summary['roots']>, asked = {}, newKinds: Summary['newKinds'] = []) => objectionsTo({ ...IDLE, phase: 'done', asked, roots, summary: { roots: { total: 9, unchanged: 0, changed: 0, fails: 0, newlyFailing: 0, unknown: 0, ...counts }, newKinds } as Summary });
  const unknown = [root('a', 'unknown'), root('b', 'unknown', { hasAnswer: false })];
  assert.deepEqual(of([root('a', 'fails', { failure, failsNow: true })], { fails: 1 }), []);
  assert.deepEqual(of([], { fails: 2, newlyFailing: 2 }), ['2 roots would newly fail']);
  const needs = (kind: string, missing: string[] | null) => ({ apiVersion: 'v1', kind, verbs: ['get'], missing, granted: true });
  assert.deepEqual(of([], {}, {}, [needs('Secret', null), needs('Service', []), needs('Pod', ['get'])]), ['the host lacks rights on Pod']);
  assert.deepEqual(of(unknown.slice(0, 1), { unknown: 1 }), [], 'the gate has taken its answer');
  assert.deepEqual(of(unknown, { unknown: 2 }), ['it cannot be told whether 1 root would fail']);
  assert.deepEqual(of(unknown, { unknown: 5 }), ['it cannot be told whether 4 roots would fail'], 'those that are not listed');
  for (const asked of [{ namespace: 'a' }, { labelSelector: 'a=b' }, { root: 'a' }]) assert.deepEqual(of([], {}, asked), ['the plan was about some of the roots alone']);
  assert.deepEqual(of([], {}, { server: true }), []);
});

test('what a swap would do is told apart from what fails already', () => {
  const done = (roots: Partial<Summary['roots']>) => ({ ...IDLE, phase: 'done' as const, summary: { roots: { total: 9, unchanged: 0, changed: 0, fails: 0, newlyFailing: 0, unknown: 0, ...roots } } as Summary });
  assert.equal(consequence(done({ unchanged: 9 })), 'No root would change.');
  assert.equal(consequence(done({ changed: 2, fails: 3, newlyFailing: 1 })), 'It would change 2 roots and make 1 root fail. 2 roots would go on failing.');
  assert.equal(consequence(done({ unknown: 1 })), 'No root would change. Of 1 root it cannot be told.');
});
