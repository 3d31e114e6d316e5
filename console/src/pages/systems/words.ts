// What conditions say, in words for somebody who does not run the engine.
import { BAD_WHEN_TRUE } from '../../lib/conditions';
import type { Condition } from '../../api/generated';
import type { K8sObject } from '../../lib/kubernetes';
import type { Stateful, Tone } from '../../ui/state';
import { beginning } from '../../ui/text';

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
  rank: number;
}

const WORDS: Record<string, Partial<Record<string, [Tone, string]>>> = {
  Ready: { True: ['ok', 'Everything is as it should be'], False: ['bad', 'Not ready'], Unknown: ['muted', 'Not known yet'] },
  Reconciling: { True: ['info', 'Being worked on'], False: ['muted', 'At rest'] },
  Stalled: { True: ['bad', 'Cannot go on without a change'], False: ['muted', 'Nothing is in the way'] },
  Progressing: { True: ['info', 'Pods are being replaced'], False: ['muted', 'No Pods are being replaced'] },
  Degraded: { True: ['bad', 'Less is working than should'], False: ['muted', 'Nothing is degraded'] },
  Available: { True: ['ok', 'Available'], False: ['bad', 'Not available'] },
};

function wordsOf(type: string, status: string): [Tone, string] {
  const known = Object.hasOwn(WORDS, type) ? WORDS[type]?.[status] : undefined;
  if (known) return known;
  const name = type.replace(/([a-z0-9])([A-Z])/g, '$1 $2');
  const words = status === 'True' ? name : status === 'False' ? `Not ${name.charAt(0).toLowerCase()}${name.slice(1)}` : `${name}: not known`;
  if (!BAD_WHEN_TRUE.test(type)) return ['muted', words];
  return status === 'True' ? ['bad', words] : ['muted', words];
}

const RANKS: Record<Tone, number> = { bad: 0, warn: 1, info: 2, ok: 3, muted: 4 };

/** The most conditions that are worth drawing. */
export const MOST_CONDITIONS = 50;

function isCondition(value: unknown): value is Condition {
  return typeof value === 'object' && value !== null && typeof (value as Condition).type === 'string' && typeof (value as Condition).status === 'string';
}

/** The conditions of an object, as far as they have the shape of conditions. */
export function conditionsOf(object: K8sObject): Condition[] {
  const found = object.status?.conditions;
  return Array.isArray(found) ? (found as unknown[]).filter(isCondition) : [];
}

/** What the conditions say, the first blocker on top. */
export function saidOf(object: K8sObject): Said[] {
  const generation = object.metadata.generation ?? 0;
  return conditionsOf(object)
    .map(({ type, status, reason, message, lastTransitionTime, observedGeneration }) => {
      const [tone, words] = wordsOf(beginning(type, 200), beginning(status, 20));
      return { type: beginning(type, 200), tone, words, reason: beginning(String(reason ?? ''), 200), message: beginning(String(message ?? '')), since: String(lastTransitionTime ?? ''), isOld: (observedGeneration ?? generation) < generation, rank: RANKS[tone] };
    })
    .sort((one, other) => one.rank - other.rank);
}

/** The state of a whole object, as a row of a list would have it. */
export function statefulOf(object: K8sObject): Stateful {
  const conditions = conditionsOf(object);
  const find = (type: string) => conditions.find((condition) => condition.type === type);
  const ready = find('Ready');
  const generation = object.metadata.generation ?? 0;
  return {
    ready: {
      status: ready?.status ?? null, reason: ready?.reason ?? '', message: ready?.message ?? '', since: ready?.lastTransitionTime ?? null,
      current: ready !== undefined && (ready.observedGeneration ?? generation) === generation,
    },
    stalled: find('Stalled')?.status === 'True',
    reconciling: find('Reconciling')?.status === 'True',
    suspended: object.metadata.annotations?.['pintle.dev/suspend'] === 'true',
    deleting: object.metadata.deletionTimestamp !== undefined,
  };
}

/** A host name that is safe to make a link of: what else stands in a status is shown as text. */
export function isHost(text: unknown): text is string {
  return typeof text === 'string' && text.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:\d{1,5})?$/i.test(text);
}
