// What a module declares of itself, and what of it is new against another. Values in, values out.
import type { Json } from '../../api/generated';
import { isObject } from '../../forms/path';
import type { Grants } from '../../lib/kubernetes';
import { groupOf } from './words';

export interface DeclaredKind {
  apiVersion: string;
  kind: string;
}

/** A guest's manifest, as far as the pages read it. */
export interface Manifest {
  name: string;
  version: string;
  reconciles: DeclaredKind;
  observeStatus?: boolean;
  children?: (DeclaredKind & { observe?: boolean })[];
  needs?: (DeclaredKind & { indexes?: string[] })[];
  patches?: (DeclaredKind & { fields: string[] })[];
  evictions?: boolean;
  configSchema?: Json;
  finalizer?: boolean;
}

/** The manifest in a value, if it is one. A module of views alone has none. */
export function manifestIn(value: Json | undefined): Manifest | null {
  if (!isObject(value)) return null;
  const { name, version, reconciles } = value;
  if (typeof name !== 'string' || typeof version !== 'string' || !isObject(reconciles)) return null;
  return typeof reconciles.kind === 'string' && typeof reconciles.apiVersion === 'string' ? (value as unknown as Manifest) : null;
}

function kindWords({ apiVersion, kind }: DeclaredKind): string {
  return groupOf(apiVersion) ? `${kind} (${apiVersion})` : kind;
}

/** The properties of a config that a schema of it names. */
export function configProperties(schema: Json | undefined): Map<string, { type: string; description: string; isRequired: boolean }> {
  const found = new Map<string, { type: string; description: string; isRequired: boolean }>();
  const { properties, required }: { [key: string]: Json } = isObject(schema) ? schema : {};
  for (const [name, value] of Object.entries(isObject(properties) ? properties : {})) {
    const one = isObject(value) ? value : {};
    const type = typeof one.type === 'string' ? one.type : 'any';
    found.set(name, { type, description: typeof one.description === 'string' ? one.description : '', isRequired: Array.isArray(required) && required.includes(name) });
  }
  return found;
}

export interface Difference {
  kind: 'new' | 'gone' | 'other';
  /** What of a manifest it is about: children, needs, config. */
  about: string;
  what: string;
  /** Whether somebody has to grant something before it works. */
  isRight: boolean;
}

/** What a manifest declares that another does not, and the other way round. */
export function manifestDifferences(before: Manifest, after: Manifest): Difference[] {
  const found: Difference[] = [];
  const say = (kind: Difference['kind'], about: string, what: string, isRight = false) => found.push({ kind, about, what, isRight });
  if (kindWords(before.reconciles) !== kindWords(after.reconciles)) say('other', 'reconciles', `${kindWords(after.reconciles)} instead of ${kindWords(before.reconciles)}`);
  const lists = (about: string, one: readonly DeclaredKind[] = [], other: readonly DeclaredKind[] = []) => {
    const [old, now] = [new Set(one.map(kindWords)), new Set(other.map(kindWords))];
    for (const what of now) if (!old.has(what)) say('new', about, what, true);
    for (const what of old) if (!now.has(what)) say('gone', about, what);
  };
  lists('children', before.children, after.children);
  lists('needs', before.needs, after.needs);
  lists('patches', before.patches, after.patches);
  for (const patch of after.patches ?? []) {
    const old = before.patches?.find((one) => kindWords(one) === kindWords(patch));
    for (const field of patch.fields) if (old && !old.fields.includes(field)) say('new', 'patches', `${field} of ${kindWords(patch)}`, true);
  }
  for (const child of after.children ?? []) {
    const old = before.children?.find((one) => kindWords(one) === kindWords(child));
    if (old && Boolean(old.observe) !== Boolean(child.observe)) say('other', 'children', `${kindWords(child)} is ${child.observe ? 'observed now' : 'no longer observed'}`);
  }
  const flags = [['evictions', 'evicts Pods', true], ['finalizer', 'cleans up before a root goes', false], ['observeStatus', 'sees its own status', false]] as const;
  for (const [flag, what, isRight] of flags) if (Boolean(before[flag]) !== Boolean(after[flag])) say(after[flag] ? 'new' : 'gone', flag, what, Boolean(after[flag]) && isRight);
  const [old, now] = [configProperties(before.configSchema), configProperties(after.configSchema)];
  for (const [name, { type, isRequired }] of now) {
    const was = old.get(name);
    if (!was) say('new', 'config', `${name}: ${type}${isRequired ? ', required' : ''}`);
    else if (was.type !== type || was.isRequired !== isRequired) say('other', 'config', `${name}: ${type}${isRequired ? ', required' : ''}, was ${was.type}${was.isRequired ? ', required' : ''}`);
  }
  for (const name of old.keys()) if (!now.has(name)) say('gone', 'config', name);
  return found;
}

/** What a manifest declares and the grants do not allow. The host asks for both. */
export function notGranted(manifest: Manifest, grants: Grants | undefined): string[] {
  const missing: string[] = [];
  for (const child of manifest.children ?? []) if (!grants?.children?.some((one) => one.apiVersion === child.apiVersion && one.kinds.includes(child.kind))) missing.push(`children: ${kindWords(child)}`);
  for (const need of manifest.needs ?? []) if (!grants?.needs?.some((one) => one.apiVersion === need.apiVersion && one.kinds.includes(need.kind))) missing.push(`needs: ${kindWords(need)}`);
  for (const patch of manifest.patches ?? []) {
    const granted = grants?.patches?.find((one) => one.apiVersion === patch.apiVersion && one.kind === patch.kind);
    if (!granted) missing.push(`patches: ${kindWords(patch)}`);
  }
  if (manifest.evictions && !grants?.evictions && !grants?.podDeletions) missing.push('evictions');
  return missing;
}
