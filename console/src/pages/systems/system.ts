// A system: a kind of root, and where its pages are.
import { type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call, pathOf } from '../../api/call';
import type { Described } from '../../api/generated';
import type { KindPath } from '../../api/objects';
import { begins, takeAhead } from '../../lib/ahead';
import { asProblem, type Problem, ProblemError, readJson } from '../../lib/api';
import type { JsonSchema } from '../../lib/kubernetes';
import { namespaceShown } from '../../lib/namespace';
import { homeOf } from '../../lib/paths';
import { session } from '../../lib/session';
import { pluralOf } from '../../ui/text';

export interface System extends KindPath {
  kind: string;
  /** What many of them are called. */
  many: string;
  namespaced: boolean;
  /** The list's page. */
  home: string;
}

/** The kind of an address such as /kinds/my.domain/v1/webservers. */
export const kindOfParams = ({ group = '', version = '', plural = '' }: Record<string, string>): KindPath => ({ group, version, plural });

/** A kind and its schema, of which the API's description says no more than that it is JSON. */
export interface Schema extends Omit<Described, 'schema'> {
  schema: JsonSchema;
}

/** The system of a kind whose schema is known. */
export function systemOf({ group, version, plural, kind, namespaced }: Schema): System {
  const path = { group, version, plural };
  return { ...path, kind, many: pluralOf(kind), namespaced, home: homeOf(path) };
}

/** The namespace of an address: none for `-`. */
export const namespaceOf = (text: string | undefined): string | null => (text === undefined || text === '-' ? null : text);

interface Loaded<T> {
  value: T | undefined;
  problem: Problem | null;
}

const schemas = new Map<string, Signal<Loaded<Schema>>>();

function schemaSignal({ group, version, plural }: KindPath): Signal<Loaded<Schema>> {
  const key = `${group}/${version}/${plural}`;
  const known = schemas.get(key) ?? signal<Loaded<Schema>>({ value: undefined, problem: null });
  schemas.set(key, known);
  return known;
}

/** Reads a schema; whatever was known stays shown meanwhile, because a CRD seldom changes. */
async function readSchema(kind: KindPath): Promise<void> {
  const known = schemaSignal(kind);
  try {
    const asked = { path: kind, query: { namespace: namespaceShown() } };
    const path = pathOf('getSchema', asked);
    begins(path);
    const early = takeAhead(path);
    const value = (await (early ? early.then((answer) => readJson(answer)) : call('getSchema', asked))) as Schema;
    if (JSON.stringify(value) !== JSON.stringify(known.value.value)) known.value = { value, problem: null };
  } catch (error) {
    known.value = { value: known.value.value, problem: asProblem(error) };
  }
}

/** The schema of a kind, read when a page that needs it opens. */
export function useSchema(kind: KindPath): Loaded<Schema> & { retry: () => void } {
  const found = schemaSignal(kind);
  // Who is signed in, and so the namespace, is known first: the columns may be those of its table.
  const isKnown = session.value !== null;
  useEffect(() => {
    if (isKnown) void readSchema(kind);
  }, [isKnown, kind.group, kind.version, kind.plural, namespaceShown()]);
  return { ...found.value, retry: () => void readSchema(kind) };
}

/** The namespaces that the user may list; null where that is not allowed, undefined while nobody knows. */
const namespaces = signal<readonly string[] | null | undefined>(undefined);

export function useNamespaces(): readonly string[] | null | undefined {
  useEffect(() => {
    void call('listNamespaces').then(({ items }) => {
      namespaces.value = items;
    }, (error: unknown) => {
      if (error instanceof ProblemError && namespaces.value === undefined) namespaces.value = null;
    });
  }, []);
  return namespaces.value;
}
