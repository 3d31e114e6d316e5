// What the conditions of an object say: its state in one word, the same for a row of a list and for a page, and each condition in words.
import type { Condition, Ready } from '../api/generated';
import type { K8sObject } from '../lib/kubernetes';
import type { IconName } from './icon';
import { beginning } from './text';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'muted';

/** What a state is told from: a Row is one. */
export interface Stateful {
  ready: Ready;
  stalled: boolean;
  reconciling: boolean;
  suspended: boolean;
  deleting: boolean;
  /** How many of its roots fail, for a Reconciler. */
  failing?: number | undefined;
}

export interface State {
  tone: Tone;
  label: string;
  icon: IconName;
  /** Failing first: the lower, the more it needs somebody. */
  rank: number;
  /** Why, for a person; empty where the label says it all. */
  why: string;
}

const state = (rank: number, tone: Tone, label: string, icon: IconName, why: string | null): State => ({ rank, tone, label, icon, why: beginning(why ?? '', 500) });

/** The states, failing first, as dashboards count them. */
export const STATES = ['Failed', 'Not ready', 'In progress', 'Deleting', 'Suspended', 'Unknown', 'Ready'] as const;

/** Reasons of the host that pass by themselves. With any other, the host tries again, but somebody has to help: a name is taken, an object is
 * missing, a right is lacking. Those that a guest gives are among the others. */
export const PASSING = new Set([
  'AnswerBeyondGrant', 'ChildHeld', 'ChildNotReady', 'Conflict', 'Deleting', 'EvictionBlocked', 'EvictionWaiting', 'Loading', 'ModuleLoading', 'NotLeading', 'Progressing',
  'Pruning', 'StageWaiting', 'TooManyRequests',
]);

/** The state of an object. What the conditions say of an older generation is not yet what is so. */
export function stateOf({ ready, stalled, reconciling, suspended, deleting, failing = 0 }: Stateful): State {
  const { status, message, current, reason } = ready;
  if (deleting) return state(3, 'muted', 'Deleting', 'trash', message);
  if (suspended) return state(4, 'muted', 'Suspended', 'pause', message);
  if (status !== null && !current) return state(2, 'info', 'In progress', 'refresh', 'A change has not been acted on yet.');
  if (stalled) return state(0, 'bad', 'Failed', 'cross-circle', message);
  // Its Ready is about the module in force, which may be well while what it is for is not.
  if (failing > 0 && status === 'True') return state(1, 'warn', 'Roots failing', 'alert', `${failing.toLocaleString('en')} of its roots fail.`);
  if (status === 'True' && !reconciling) return state(6, 'ok', 'Ready', 'check-circle', message);
  if (reconciling && (status !== 'False' || PASSING.has(reason))) return state(2, 'info', 'In progress', 'refresh', message);
  if (status === 'False') return state(1, 'warn', 'Not ready', 'alert', message);
  if (status === 'Unknown') return state(5, 'muted', 'Unknown', 'help', message);
  return state(5, 'muted', 'Unknown', 'help', 'Nothing has said yet how it is.');
}

const ICONS: Record<Tone, IconName> = { ok: 'check-circle', warn: 'alert', bad: 'cross-circle', info: 'info', muted: 'circle' };

/** The icon of a tone. */
export const iconOf = (tone: Tone): IconName => ICONS[tone];

function isCondition(value: unknown): value is Condition {
  return typeof value === 'object' && value !== null && typeof (value as Condition).type === 'string' && typeof (value as Condition).status === 'string';
}

/** The conditions of an object, as far as they have the shape of conditions. */
function conditionsOf(object: K8sObject): Condition[] {
  const found: unknown = object.status?.conditions;
  return Array.isArray(found) ? found.filter(isCondition) : [];
}

/** Whether the host leaves an object alone: a root has an annotation for that, read as the host reads it, and the host's own objects a field. */
export function isSuspended({ apiVersion, metadata, spec }: K8sObject): boolean {
  if (apiVersion.startsWith('pintle.dev/')) return spec?.suspend === true;
  return !['', 'false'].includes(metadata.annotations?.['pintle.dev/suspend'] ?? '');
}

/** What the state of a whole object is told from: the same as of its row in a list. */
export function statefulOf(object: K8sObject): Stateful {
  const conditions = conditionsOf(object);
  const find = (type: string) => conditions.find((condition) => condition.type === type);
  const ready = find('Ready');
  const observed = ready?.observedGeneration ?? object.status?.observedGeneration;
  return {
    ready: {
      status: ready?.status ?? null,
      reason: ready?.reason ?? '',
      message: ready?.message ?? '',
      current: ready !== undefined && (typeof observed !== 'number' || observed === object.metadata.generation),
      since: ready?.lastTransitionTime ?? null,
    },
    stalled: find('Stalled')?.status === 'True',
    reconciling: find('Reconciling')?.status === 'True',
    suspended: isSuspended(object),
    deleting: object.metadata.deletionTimestamp !== undefined,
  };
}

/** Conditions that are good news when they are true, and bad news when they are false. */
const GOOD_WHEN_TRUE = new Set(['Ready', 'Available', 'Fetched', 'Verified', 'Compiled', 'Served', 'Registered', 'RootsReady', 'Healthy', 'Complete', 'Established', 'NamesAccepted']);

/** Conditions that are bad news when they are true, and no news when they are false. */
const BAD_WHEN_TRUE = /^(Stalled|Degraded)$|(Conflict|NotFound|Missing|Taken|Refused|Failed|Failure|Pressure|Unavailable|Invalid|Error)$/;

/** The tone of a condition. Kubernetes has no rule for which way round a type is meant: of one that nobody knows, only its words tell. */
function toneOfCondition({ type, status, reason }: Condition): Tone {
  if (status === 'Unknown') return 'muted';
  const isTrue = status === 'True';
  if (GOOD_WHEN_TRUE.has(type)) return isTrue ? 'ok' : reason === 'Progressing' ? 'info' : 'bad';
  if (!isTrue) return 'muted';
  if (type === 'Reconciling' || type === 'Progressing') return 'info';
  return BAD_WHEN_TRUE.test(type) ? 'bad' : 'muted';
}

const WORDS: Record<string, { True: string; False?: string }> = {
  Ready: { True: 'Everything is as it should be' },
  Reconciling: { True: 'Being worked on', False: 'At rest' },
  Stalled: { True: 'Cannot go on without a change', False: 'Nothing is in the way' },
  Progressing: { True: 'Pods are being replaced', False: 'No Pods are being replaced' },
  Degraded: { True: 'Less is working than should', False: 'Nothing is degraded' },
};

function wordsOf(type: string, status: string): string {
  const name = type.replace(/([a-z0-9])([A-Z])/g, '$1 $2');
  if (status !== 'True' && status !== 'False') return `${name}: not known`;
  const known = Object.hasOwn(WORDS, type) ? WORDS[type]?.[status] : undefined;
  return known ?? (status === 'True' ? name : `Not ${name.charAt(0).toLowerCase()}${name.slice(1)}`);
}

export interface Said {
  type: string;
  tone: Tone;
  words: string;
  /** The reason, and why. */
  reason: string;
  message: string;
  since: string;
  /** Older than the object's last change. */
  isOld: boolean;
}

const RANKS: Record<Tone, number> = { bad: 0, warn: 1, info: 2, ok: 3, muted: 4 };

/** What the conditions say: what is in the way first, and Ready before what explains it. */
export function saidOf(object: K8sObject): Said[] {
  const generation = object.metadata.generation ?? 0;
  const rank = ({ tone, type }: Said) => RANKS[tone] * 2 + (type === 'Ready' ? 0 : 1);
  return conditionsOf(object)
    .map((condition): Said => {
      const { reason, message, lastTransitionTime, observedGeneration } = condition;
      const type = beginning(condition.type, 200);
      return {
        type, tone: toneOfCondition(condition), words: wordsOf(type, beginning(condition.status, 20)), reason: beginning(String(reason ?? ''), 200),
        message: beginning(String(message ?? '')), since: String(lastTransitionTime ?? ''), isOld: (observedGeneration ?? generation) < generation,
      };
    })
    .sort((one, other) => rank(one) - rank(other));
}
