// The kinds of roots, read once and again when a Reconciler comes or goes.
import { signal } from '@preact/signals';
import { call } from '../api/call';
import type { Kind, Kinds } from '../api/generated';
import { asProblem, type Problem } from './api';
import { namespaceShown } from './namespace';
import { pluralOf } from '../ui/text';
import { rootPage } from './paths';

export const kinds = signal<Kinds | null>(null);
export const kindsProblem = signal<Problem | null>(null);
let asking: Promise<void> | null = null;

async function read(): Promise<void> {
  const namespace = namespaceShown();
  try {
    kinds.value = await call('listKinds', { query: { namespace } });
    kindsProblem.value = null;
  } catch (error) {
    kindsProblem.value = asProblem(error);
  }
  asking = null;
  // Another one was chosen meanwhile.
  if (namespace !== namespaceShown()) await readKinds();
}

/** Reads the kinds, unless that is going on already. */
export function readKinds(): Promise<void> {
  asking ??= read();
  return asking;
}

/** The kinds of which the user may see a list: in the namespace that is shown, or else in all. */
export const listableKinds = (): Kind[] => (kinds.value?.items ?? []).filter(({ mayList }) => mayList);

/** What many of a kind are called, with its group where another kind is called the same. */
export function titleOf({ kind, group, version }: Kind): string {
  const others = listableKinds().filter((one) => one.kind === kind && (one.group !== group || one.version !== version));
  return others.length === 0 ? pluralOf(kind) : `${pluralOf(kind)} (${others.some((one) => one.group === group) ? `${group}/${version}` : group})`;
}

/** The kind that an object names itself. */
export function kindOf(apiVersion: string, kind: string): Kind | undefined {
  return kinds.value?.items.find((one) => `${one.group}/${one.version}` === apiVersion && one.kind === kind);
}

/** The engine's page of a root; null for kinds that have none. */
export function rootHref(apiVersion: string, kind: string, namespace: string | null | undefined, name: string): string | null {
  const found = kindOf(apiVersion, kind);
  return found ? rootPage(found, namespace, name) : null;
}
