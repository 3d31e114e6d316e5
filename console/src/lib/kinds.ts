// The kinds of roots, read once and again when a Reconciler comes or goes.
import { signal } from '@preact/signals';
import { call } from '../api/call';
import type { Kind, Kinds } from '../api/generated';
import { asProblem, type Problem } from './api';

export const kinds = signal<Kinds | null>(null);
export const kindsProblem = signal<Problem | null>(null);
let asking: Promise<void> | null = null;

/** Reads the kinds, unless that is going on already. */
export function readKinds(): Promise<void> {
  asking ??= call('listKinds')
    .then(
      (found) => {
        kinds.value = found;
        kindsProblem.value = null;
      },
      (error: unknown) => {
        kindsProblem.value = asProblem(error);
      },
    )
    .finally(() => {
      asking = null;
    });
  return asking;
}

/** The kind that an object names itself. */
export function kindOf(apiVersion: string, kind: string): Kind | undefined {
  return kinds.value?.items.find((one) => `${one.group}/${one.version}` === apiVersion && one.kind === kind);
}

/** The page of a root, without the console's prefix; null for kinds that have none. */
export function rootHref(apiVersion: string, kind: string, namespace: string | null | undefined, name: string): string | null {
  const found = kindOf(apiVersion, kind);
  const part = encodeURIComponent;
  return found ? `/console/engine/roots/${part(found.group)}/${part(found.version)}/${part(found.plural)}/${part(namespace ?? '-')}/${part(name)}` : null;
}
