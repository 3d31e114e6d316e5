// What can be done with a root from the engine's side: reconcile it now, suspend it, resume it.
import { useState } from 'preact/hooks';
import type { Kind } from '../../api/generated';
import { callObject } from '../../api/objects';
import { asProblem } from '../../lib/api';
import { useCan } from '../../lib/can';
import { useAction } from '../../lib/keys';
import type { K8sObject } from '../../lib/kubernetes';
import { Button } from '../../ui/button';
import { isSuspended } from '../../ui/conditions';
import { toast } from '../../ui/toast';

const SUSPEND = 'pintle.dev/suspend';
const RECONCILE = 'pintle.dev/reconcile-at';

export function RootActions({ kind, object }: { kind: Kind; object: K8sObject }) {
  const { name, namespace } = object.metadata;
  const can = useCan({ verb: 'patch', group: kind.group, resource: kind.plural, name, ...(namespace ? { namespace } : {}) }).value;
  const [busy, setBusy] = useState('');
  const suspended = isSuspended(object);
  const annotate = async (key: string, value: string | null, done: string) => {
    setBusy(key);
    try {
      await callObject('patchObject', { ...kind, namespace, name }, { body: { metadata: { annotations: { [key]: value } } } });
      toast(done);
    } catch (error) {
      toast(asProblem(error).detail, 'bad');
    }
    setBusy('');
  };
  const reconcile = () => void annotate(RECONCILE, new Date().toISOString(), `${name} is reconciled now.`);
  const toggle = () => void annotate(SUSPEND, suspended ? null : 'true', suspended ? `${name} is resumed.` : `${name} is suspended.`);
  useAction({ id: 'root-reconcile', title: `Reconcile ${name} now`, group: 'Root', run: reconcile, when: can === true && !suspended });
  useAction({ id: 'root-suspend', title: suspended ? `Resume ${name}` : `Suspend ${name}`, group: 'Root', run: toggle, when: can === true });
  const why = can === false ? `You may not change this ${kind.kind}.` : undefined;
  return (
    <>
      <Button icon="refresh" busy={busy === RECONCILE} disabled={can !== true || suspended} title={why} onClick={reconcile}>Reconcile</Button>
      <Button icon={suspended ? 'play' : 'pause'} busy={busy === SUSPEND} disabled={can !== true} title={why} onClick={toggle}>{suspended ? 'Resume' : 'Suspend'}</Button>
    </>
  );
}
