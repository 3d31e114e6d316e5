// A system: a kind of root, where its pages are, and how its form is laid out.
import { type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { call } from '../../api/call';
import type { Described } from '../../api/generated';
import type { KindPath } from '../../api/objects';
import { layoutOf } from '../../forms/layouts';
import type { Layout } from '../../forms/layout';
import { asProblem, type Problem, ProblemError } from '../../lib/api';
import { keep, kept } from '../../lib/kept';
import type { JsonSchema } from '../../lib/kubernetes';
import { DARKROOM, homeOf, isDarkroom } from '../../lib/paths';

export interface System extends KindPath {
  kind: string;
  namespaced: boolean;
  layout: Layout;
  /** The list's page. */
  home: string;
}

/** The Darkrooms, which have addresses of their own. */
export const sources: System = { ...DARKROOM, namespaced: true, layout: layoutOf(DARKROOM, DARKROOM.kind), home: homeOf(DARKROOM) };

/** The kind of an address such as /kinds/my.domain/v1/webservers; that of the sources, where it names none. */
export function kindOfParams({ group, version = '', plural = '' }: Record<string, string>): KindPath {
  return group === undefined ? DARKROOM : { group, version, plural };
}

/** A kind and its schema, of which the API's description says no more than that it is JSON. */
export interface Schema extends Omit<Described, 'schema'> {
  schema: JsonSchema;
}

/** The system of a kind whose schema is known. */
export function systemOf({ group, version, plural, kind, namespaced }: Schema): System {
  const path = { group, version, plural };
  if (isDarkroom(path)) return sources;
  return { ...path, kind, namespaced, layout: layoutOf(path, kind), home: homeOf(path) };
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
    const value = (await call('getSchema', { path: kind })) as Schema;
    if (JSON.stringify(value) !== JSON.stringify(known.value.value)) known.value = { value, problem: null };
  } catch (error) {
    known.value = { value: known.value.value, problem: asProblem(error) };
  }
}

/** The schema of a kind, read when a page that needs it opens. */
export function useSchema(kind: KindPath): Loaded<Schema> & { retry: () => void } {
  const found = schemaSignal(kind);
  useEffect(() => void readSchema(kind), [kind.group, kind.version, kind.plural]);
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

const REMEMBERED = 'pintle-namespace';

/** The namespace in which somebody last made something. */
export const lastNamespace = (): string => kept(REMEMBERED) ?? 'default';

export const rememberNamespace = (namespace: string): void => keep(REMEMBERED, namespace);
