// The state of an object in one word, from its conditions: the same for a row of a list and for a page.
import type { Ready } from '../api/generated';
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
export function stateOf({ ready, stalled, reconciling, suspended, deleting }: Stateful): State {
  const { status, message, current, reason } = ready;
  if (deleting) return state(3, 'muted', 'Deleting', 'trash', message);
  if (suspended) return state(4, 'muted', 'Suspended', 'pause', message);
  if (status !== null && !current) return state(2, 'info', 'In progress', 'refresh', 'A change has not been acted on yet.');
  if (stalled) return state(0, 'bad', 'Failed', 'cross-circle', message);
  if (status === 'True' && !reconciling) return state(6, 'ok', 'Ready', 'check-circle', message);
  if (reconciling && (status !== 'False' || PASSING.has(reason))) return state(2, 'info', 'In progress', 'refresh', message);
  if (status === 'False') return state(1, 'warn', 'Not ready', 'alert', message);
  if (status === 'Unknown') return state(5, 'muted', 'Unknown', 'help', message);
  return state(5, 'muted', 'Unknown', 'help', 'Nothing has said yet how it is.');
}

/** The tone of a condition's status, where True is good. */
export function toneOf(status: string | null): Tone {
  return status === 'True' ? 'ok' : status === 'False' ? 'bad' : 'muted';
}

const ICONS: Record<Tone, IconName> = { ok: 'check-circle', warn: 'alert', bad: 'cross-circle', info: 'info', muted: 'circle' };

/** The icon of a tone. */
export function iconOf(tone: Tone): IconName {
  return ICONS[tone];
}
