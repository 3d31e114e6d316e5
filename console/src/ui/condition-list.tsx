// The conditions of an object, and what of them is in the way.
import { useMemo } from 'preact/hooks';
import type { K8sObject } from '../lib/kubernetes';
import { Age } from './age';
import { iconOf, saidOf, statefulOf, stateOf } from './conditions';
import { Notice } from './feedback';
import { Icon } from './icon';
import { beginning } from './text';

/** The most conditions that are worth drawing. */
const MOST = 50;

/** The conditions of an object in words; what is in the way first. */
export function Conditions({ object }: { object: K8sObject }) {
  const said = useMemo(() => saidOf(object), [object]);
  if (said.length === 0) return <p class="muted">Nothing has been said about it yet.</p>;
  const told = new Set<string>();
  // Several conditions often say the same: it is read once.
  const isNews = (message: string) => message !== '' && !told.has(message) && told.add(message);
  return (
    <>
      <ul class="plain said" role="list">
        {said.slice(0, MOST).map(({ type, tone, words, reason, message, since, isOld }, index) => (
          <li key={`${type} ${index}`}>
            <Icon name={iconOf(tone)} class={`tone-${tone}`} />
            <div>
              <strong>{words}</strong> <span class="muted small mono"><bdi>{type}</bdi>{reason && <>: <bdi>{reason}</bdi></>}</span>
              {isOld && <span class="tag">before the last change</span>}
              {isNews(message) && <p class="muted words">{message}</p>}
            </div>
            <Age time={since} />
          </li>
        ))}
      </ul>
      {said.length > MOST && <p class="muted small">{(said.length - MOST).toLocaleString('en')} more are in the YAML.</p>}
    </>
  );
}

/** What becomes of what is in the way. */
const NEXT: Partial<Record<string, string>> = { Failed: 'Only a change helps.', 'Not ready': 'It is tried again by itself.' };

/** What is in the way of an object, above everything else. */
export function Blocker({ object }: { object: K8sObject }) {
  const stateful = statefulOf(object);
  const { label, tone, why } = stateOf(stateful);
  if (label === 'Ready' || label === 'Unknown' || why === '') return null;
  const { reason, since } = stateful.ready;
  const next = NEXT[label];
  return (
    <Notice tone={tone === 'muted' ? 'info' : tone} title={next ? `${label}: ${beginning(reason, 200)}` : label}>
      <p class="words">{why}</p>
      {next && <span class="muted">{next} <Age time={since} ago /></span>}
    </Notice>
  );
}
