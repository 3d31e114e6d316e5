// Operations on one object: each has a path for objects in a namespace, and another for objects in none.
import { readJson } from '../lib/api';
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
