// The namespace that lists show, and in which new objects are made: the one that was chosen last in this cluster, or else that of the kubeconfig.
import { signal } from '@preact/signals';
import { keep, kept } from './kept';
import { queryOf, setQuery } from './router';
import { session } from './session';

/** What stands for all namespaces, where nothing would stand for no choice. */
const ALL = '*';

/** Counts choices, so that whoever looks sees each. */
const choices = signal(0);

const key = (): string => `pintle-namespace ${session.value?.cluster ?? ''}`;

/** Nothing for all namespaces. */
export function namespaceShown(): string {
  void choices.value;
  const chosen = queryOf('namespace') || kept(key()) || session.value?.namespace || ALL;
  return chosen === ALL ? '' : chosen;
}

/** Where something new is made unless somebody says otherwise. */
export const namespaceOfNew = (): string => namespaceShown() || session.value?.namespace || 'default';

/** Remembers a namespace; nothing for all of them. */
export function rememberNamespace(namespace: string): void {
  keep(key(), namespace || ALL);
  choices.value += 1;
}

/** Shows another namespace. */
export function chooseNamespace(namespace: string): void {
  rememberNamespace(namespace);
  if (queryOf('namespace') !== '') setQuery({ namespace: namespace || ALL });
}
