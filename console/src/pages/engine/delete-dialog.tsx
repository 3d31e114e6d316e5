import type { ComponentChildren } from 'preact';
import { callObject, type KindPath } from '../../api/objects';
import { useAct } from '../../lib/act';
import type { K8sObject } from '../../lib/kubernetes';
import { ConfirmByName } from '../../ui/dialog';
import { toast } from '../../ui/toast';

interface DeleteProps {
  kind: KindPath;
  object: K8sObject;
  title: string;
  /** What is said when it is done. */
  said: string;
  children: ComponentChildren;
  onDone: () => void;
  onClose: () => void;
}

/** Deletes an object, once somebody has typed its name. */
export function DeleteDialog({ kind, object, title, said, children, onDone, onClose }: DeleteProps) {
  const { name, namespace, uid } = object.metadata;
  const { run, busy, problem } = useAct(async () => {
    await callObject('deleteObject', { ...kind, namespace, name }, { query: { uid } });
    toast(said);
    onDone();
  });
  return <ConfirmByName title={title} name={name} verb="Delete" busy={busy} problem={problem} onConfirm={run} onClose={onClose}>{children}</ConfirmByName>;
}
