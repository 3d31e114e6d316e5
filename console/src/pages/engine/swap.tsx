// The swap itself: after a plan, behind the typed name of the Reconciler.
import { useState } from 'preact/hooks';
import type { Summary } from '../../api/generated';
import { patchSeen } from '../../api/objects';
import { useAct } from '../../lib/act';
import { useCan } from '../../lib/can';
import type { K8sObject, ReconcilerSpec } from '../../lib/kubernetes';
import { navigate } from '../../lib/router';
import { RECONCILERS } from '../../lib/store';
import { Button } from '../../ui/button';
import { ConfirmByName } from '../../ui/dialog';
import { Notice } from '../../ui/feedback';
import { Switch } from '../../ui/inputs';
import { toast } from '../../ui/toast';
import { swapPatch } from './config';
import type { EditedConfig } from './config-editor';
import { reconcilerPage } from './paths';
import { consequence, isOfSome, newlyFailing, objectionsTo, type PlanState } from './plan-run';
import { count, enumeration } from './words';

export interface Planned {
  module: string;
  config: EditedConfig;
  /** The Reconciler as it was. */
  object: K8sObject;
}

/** So many objects that go are named. */
const MOST_NAMES = 10;

/** What a swap takes away: the objects that it deletes, and the Pods that are replaced or end. */
function TakenAway({ summary: { deletionCount, deletions, restarts, stops } }: { summary: Summary }) {
  const pods = [restarts > 0 ? `${count(restarts, 'Pod')} replaced` : '', stops > 0 ? `${count(stops, 'Pod')} ended` : ''].filter(Boolean);
  const names = deletions.slice(0, MOST_NAMES).map(({ kind, namespace, name }) => `${kind} ${namespace ? `${namespace}/` : ''}${name}`);
  const more = deletionCount - names.length;
  return (
    <>
      {deletionCount > 0 && (
        <Notice tone="warn" title={`Deleted: ${count(deletionCount, 'object')}`}>
          <ul>
            {names.map((name) => <li key={name}>{name}</li>)}
            {more > 0 && <li>and {more.toLocaleString('en')} more</li>}
          </ul>
        </Notice>
      )}
      {pods.length > 0 && <Notice tone="warn">{enumeration(pods)}</Notice>}
    </>
  );
}

export function SwapBar({ object, planned, state }: { object: K8sObject; planned: Planned; state: PlanState }) {
  const name = object.metadata.name;
  const spec = (object.spec ?? {}) as unknown as ReconcilerSpec;
  const can = useCan({ verb: 'patch', group: RECONCILERS.group, resource: RECONCILERS.plural, name });
  const [asks, setAsks] = useState(false);
  const [isForced, force] = useState(false);
  const { config } = planned;
  const patch = swapPatch({ module: spec.module, ...(spec.config === undefined ? {} : { config: spec.config }) }, { module: planned.module, isEdited: config.isEdited, ...(config.value === undefined ? {} : { config: config.value }) });
  const isNothing = Object.keys(patch.spec).length === 0;
  const { generation } = planned.object.metadata;
  const objections = objectionsTo(state);
  const variant = newlyFailing(state) > 0 ? 'danger' : 'primary';

  const { run, busy, problem } = useAct(async () => {
    await patchSeen(RECONCILERS, planned.object, patch, (now) => now.metadata.generation === generation);
    toast(`${planned.module} is to be in force on ${name}.`);
    navigate(reconcilerPage(name));
  });

  if (isNothing) return <Notice tone="info">This is what the Reconciler asks for already: there is nothing to swap.</Notice>;
  if (generation !== object.metadata.generation) return <Notice tone="warn">The Reconciler has changed since this plan. Plan again, and then swap.</Notice>;
  return (
    <section class="swap-bar" aria-label="Swap">
      <div>
        <strong>Put {planned.module}{config.isEdited && ' with another config'} in force</strong>
        <p class="muted">{consequence(state)}{isOfSome(state) && ' The plan was about some of the roots; the swap is about all.'}</p>
      </div>
      <Button variant={variant} icon="swap" disabled={can.value !== true} title={can.value === false ? 'You may not change this Reconciler.' : undefined} onClick={() => setAsks(true)}>Swap</Button>
      {asks && (
        <ConfirmByName title={`Swap ${name} to ${planned.module}?`} name={name} verb="Swap" variant={variant} busy={busy} disabled={objections.length > 0 && !isForced} problem={problem} onConfirm={run} onClose={() => setAsks(false)}>
          <p>{consequence(state)}</p>
          {state.summary && <TakenAway summary={state.summary} />}
          {objections.length > 0 && <Switch checked={isForced} onChange={force}>Swap all roots, although {enumeration(objections)}</Switch>}
        </ConfirmByName>
      )}
    </section>
  );
}
