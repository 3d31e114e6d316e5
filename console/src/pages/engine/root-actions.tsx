// What can be done with a root from the engine's side: reconcile it now, suspend it, resume it.
import type { Kind } from '../../api/generated';
import { callObject } from '../../api/objects';
import { useAct } from '../../lib/act';
import { useCan } from '../../lib/can';
import { useAction } from '../../lib/keys';
import type { K8sObject } from '../../lib/kubernetes';
import { Button } from '../../ui/button';
import { isSuspended } from '../../ui/conditions';
import { toast, toastProblem } from '../../ui/toast';

export function RootActions({ kind, object }: { kind: Kind; object: K8sObject }) {
  const { name, namespace } = object.metadata;
  const can = useCan({ verb: 'patch', group: kind.group, resource: kind.plural, name, ...(namespace ? { namespace } : {}) }).value;
  const suspended = isSuspended(object);
  const annotate = async (key: string, value: string | null, said: string) => {
    try {
      await callObject('patchObject', { ...kind, namespace, name }, { body: { metadata: { annotations: { [key]: value } } } });
      toast(said);
    } catch (error) {
      toastProblem(error);
    }
  };
  const reconcile = useAct(() => annotate('pintle.dev/reconcile-at', new Date().toISOString(), `${name} is reconciled now.`));
  const toggle = useAct(() => annotate('pintle.dev/suspend', suspended ? null : 'true', suspended ? `${name} is resumed.` : `${name} is suspended.`));
  useAction({ id: 'root-reconcile', title: `Reconcile ${name} now`, group: 'Root', run: reconcile.run, when: can === true && !suspended });
  useAction({ id: 'root-suspend', title: suspended ? `Resume ${name}` : `Suspend ${name}`, group: 'Root', run: toggle.run, when: can === true });
  const why = can === false ? `You may not change this ${kind.kind}.` : undefined;
  return (
    <>
      <Button icon="refresh" busy={reconcile.busy} disabled={can !== true || suspended} title={why} onClick={reconcile.run}>Reconcile</Button>
      <Button icon={suspended ? 'play' : 'pause'} busy={toggle.busy} disabled={can !== true} title={why} onClick={toggle.run}>{suspended ? 'Resume' : 'Suspend'}</Button>
    </>
  );
}
