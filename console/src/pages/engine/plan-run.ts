// One plan from its request to its summary. What the stream says is put together by `heard`, which is pure; `PlanRun` asks.
import { signal } from '@preact/signals';
import { begin, type EventsOf } from '../../api/call';
import type { PlannedRoot, PlanRequest, Summary, Verdict } from '../../api/generated';
import { asProblem, type Problem, ProblemError, problemOf, readProblem } from '../../lib/api';
import { readEvents, type Message } from '../../lib/sse';
import { count, enumeration } from './words';

export interface PlanState {
  phase: 'idle' | 'running' | 'done' | 'failed' | 'cancelled';
  /** What was asked. */
  asked: PlanRequest | null;
  done: number;
  total: number;
  roots: PlannedRoot[];
  summary: Summary | null;
  problem: Problem | null;
}

export const IDLE: PlanState = { phase: 'idle', asked: null, done: 0, total: 0, roots: [], summary: null, problem: null };

type Told = EventsOf<'plan'>;

/** The state after some events of the stream. */
export function heard(state: PlanState, messages: readonly Message[]): PlanState {
  let next = state;
  let roots: PlannedRoot[] | null = null;
  for (const { event, data } of messages) {
    const said: unknown = JSON.parse(data);
    if (typeof said !== 'object' || said === null) continue;
    if (event === 'progress') {
      const { done, total } = said as Told['progress'];
      next = { ...next, done, total };
    } else if (event === 'root') {
      roots ??= [...state.roots];
      roots.push(said as Told['root']);
    } else if (event === 'summary') next = { ...next, phase: 'done', summary: said as Told['summary'] };
    else if (event === 'problem') next = { ...next, phase: 'failed', problem: said as Told['problem'] };
  }
  return roots ? { ...next, roots } : next;
}

/** In which count a root is: one that fails is in no other, whatever becomes of it besides. */
export const verdictOf = ({ failure, verdict }: PlannedRoot): Verdict => (failure ? 'fails' : verdict);

/** The verdicts so far: those of the summary where there is one, else of the roots that were told. */
export function countsOf({ summary, roots, done }: PlanState): Record<Verdict, number> {
  if (summary) {
    const { unchanged, changed, fails, unknown } = summary.roots;
    return { unchanged, changed, fails, unknown };
  }
  const counts = { unchanged: 0, changed: 0, fails: 0, unknown: 0 };
  for (const root of roots) counts[verdictOf(root)] += 1;
  counts.unchanged = Math.max(0, done - roots.length);
  return counts;
}

/** What the swap would do, in a sentence. */
export function consequence(state: PlanState): string {
  const { changed, fails, unknown } = countsOf(state);
  const newly = newlyFailing(state);
  // Of a root that fails, what is not refused is carried out.
  const changing = changed + (state.summary?.partial ?? 0);
  const parts = [changing > 0 ? `change ${count(changing, 'root')}` : '', newly > 0 ? `make ${count(newly, 'root')} fail` : ''].filter(Boolean);
  const known = [parts.length > 0 ? `It would ${enumeration(parts)}.` : 'No root would change.'];
  if (fails > newly) known.push(`${count(fails - newly, 'root')} would go on failing.`);
  if (unknown > 0) known.push(`Of ${count(unknown, 'root')} it cannot be told.`);
  return known.join(' ');
}

/** How many roots fail that do not fail with what is in force. */
export function newlyFailing({ summary, roots }: PlanState): number {
  return summary?.roots.newlyFailing ?? roots.filter((root) => verdictOf(root) === 'fails' && root.failsNow !== true).length;
}

/** Of how many roots it cannot be told whether they would fail: those without an answer. One that is not listed may have none. */
function unansweredOf(state: PlanState): number {
  return countsOf(state).unknown - state.roots.filter((root) => verdictOf(root) === 'unknown' && root.hasAnswer).length;
}

/** Whether only some of the roots were asked about. */
export const isOfSome = ({ asked }: PlanState): boolean => Boolean(asked?.namespace || asked?.labelSelector || asked?.root);

/** The kinds of which the host is known to lack a right that the module needs. */
export const kindsWithoutRights = ({ newKinds }: Summary): string[] => newKinds.filter(({ missing }) => missing?.length).map(({ kind }) => kind);

/** Why a swap is not made unless somebody wants it all the same: as `pintle swap` asks for --force. */
export function objectionsTo(state: PlanState): string[] {
  const [fails, unanswered] = [newlyFailing(state), unansweredOf(state)];
  const without = state.summary ? kindsWithoutRights(state.summary) : [];
  return [
    ...(without.length > 0 ? [`the host lacks rights on ${enumeration(without)}`] : []),
    ...(fails > 0 ? [`${count(fails, 'root')} would newly fail`] : []),
    ...(unanswered > 0 ? [`it cannot be told whether ${count(unanswered, 'root')} would fail`] : []),
    ...(isOfSome(state) ? ['the plan was about some of the roots alone'] : []),
  ];
}

const ORDER: Record<Verdict, number> = { fails: 0, unknown: 1, changed: 2, unchanged: 3 };

/** The roots of some verdicts whose name fits, those that need a look first. */
export function shownRoots(roots: readonly PlannedRoot[], verdict: Verdict | 'all', search: string): PlannedRoot[] {
  const wanted = search.trim().toLowerCase();
  return roots
    .filter((one) => (verdict === 'all' || verdictOf(one) === verdict) && `${one.root.namespace ?? ''}/${one.root.name}`.toLowerCase().includes(wanted))
    .sort((one, other) => ORDER[verdictOf(one)] - ORDER[verdictOf(other)]);
}

/** How long nothing may come before the stream counts as broken. */
const SILENCE = 60_000;

/** Plans, one at a time. */
export class PlanRun {
  readonly state = signal<PlanState>(IDLE);
  #stop: AbortController | null = null;

  async start(name: string, asked: PlanRequest): Promise<void> {
    this.#stop?.abort();
    const stop = new AbortController();
    this.#stop = stop;
    const isCurrent = () => this.#stop === stop;
    this.state.value = { ...IDLE, phase: 'running', asked };
    try {
      const answer = await begin('plan', { path: { name }, body: asked, signal: stop.signal });
      if (!answer.ok) throw new ProblemError(await readProblem(answer));
      if (answer.body) for await (const messages of readEvents(answer.body, SILENCE)) if (isCurrent()) this.state.value = heard(this.state.value, messages);
      if (isCurrent() && this.state.value.phase === 'running') throw new ProblemError(problemOf(0, 'The plan ended early', 'The connection to the host was lost before the plan was done. Plan again.'));
    } catch (error) {
      if (!isCurrent() || stop.signal.aborted) return;
      this.state.value = { ...this.state.value, phase: 'failed', problem: asProblem(error) };
    }
  }

  cancel(): void {
    if (this.state.value.phase !== 'running') return;
    this.#stop?.abort();
    this.state.value = { ...this.state.value, phase: 'cancelled' };
  }

  /** Forgets what was planned, because something else is asked about now. */
  forget(): void {
    this.#stop?.abort();
    this.#stop = null;
    this.state.value = IDLE;
  }
}
