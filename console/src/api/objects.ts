// Operations on one object: each has a path for objects in a namespace, and another for objects in none.
import { ProblemError, readJson } from '../lib/api';
import type { K8sObject } from '../lib/kubernetes';
import { address, type Answer, type Argument, type Given, type OperationId, type QueryOf, send } from './call';
import type { Json, Operations } from './generated';

/** A kind of object, as paths name it. */
export type KindPath = Operations['listObjects']['path'];

/** The operations by their names for objects in a namespace, with the names for objects in none. */
const IN_CLUSTER = {
  createObject: 'createClusterObject',
  getObject: 'getClusterObject',
  patchObject: 'patchClusterObject',
  deleteObject: 'deleteClusterObject',
  listChildren: 'listChildrenOfClusterObject',
  listEventsOf: 'listEventsOfClusterObject',
  inspect: 'inspectClusterObject',
  judge: 'judgeClusterObject',
} as const;

export type ObjectOperation = keyof typeof IN_CLUSTER;

/** Where an object is, or is to be. */
export type Place<Id extends ObjectOperation> = Omit<Operations[Id]['path'], 'namespace'> & { namespace?: string | null | undefined };

/** What an operation on an object answers. Of the object itself the API's description says no more than that it is one. */
export type ObjectAnswer<Id extends ObjectOperation> = Answer<Id> extends Record<string, Json> ? K8sObject : Answer<Id>;

function found(id: ObjectOperation, namespace: string | null | undefined): OperationId {
  return namespace ? id : IN_CLUSTER[id];
}

/** The path and the query of an operation on an object. */
export function pathOfObject<Id extends ObjectOperation>(id: Id, path: Place<Id>, query?: QueryOf<Id>): string {
  return address(found(id, path.namespace), { path, query });
}

/** Calls an operation on an object; throws a `ProblemError` where it does not do what it should. */
export async function callObject<Id extends ObjectOperation>(id: Id, path: Place<Id>, ...[given]: Argument<Given<Id>>): Promise<ObjectAnswer<Id>> {
  return readJson<ObjectAnswer<Id>>(await send(found(id, path.namespace), { ...given, path }));
}

/** How often a status that is written meanwhile may come first. */
const TRIES = 5;

/**
 * Patches an object as it was when somebody saw it. Its status may be written meanwhile. Where it is no longer the same to whoever patches it,
 * the API server's refusal is thrown.
 */
export async function patchSeen(kind: KindPath, seen: K8sObject, patch: Record<string, unknown>, isSame: (now: K8sObject) => boolean): Promise<void> {
  const { name, namespace } = seen.metadata;
  const place = { ...kind, namespace, name };
  let { resourceVersion } = seen.metadata;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const metadata = { ...(patch.metadata as object | undefined), resourceVersion };
      await callObject('patchObject', place, { body: { ...patch, metadata } as Record<string, Json> });
      return;
    } catch (error) {
      if (!(error instanceof ProblemError) || error.problem.status !== 409 || attempt >= TRIES) throw error;
      const now = await callObject('getObject', place);
      if (!isSame(now)) throw error;
      ({ resourceVersion } = now.metadata);
    }
  }
}
