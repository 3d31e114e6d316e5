// What a form is made of, told from a kind's schema: pure, without a browser.
import type { JsonSchema } from '../lib/kubernetes';
import { get, isObject, isWithin, type Path } from './path';
import { type Arm, armsOf, isChosen } from './union';

/** An object as it is typed. */
export type Thing = Record<string, unknown>;

/** How a value is edited. */
export type Widget = 'text' | 'number' | 'choice' | 'switch' | 'chips' | 'list' | 'map' | 'group' | 'int-or-string' | 'yaml';

export interface FieldNode {
  path: Path;
  key: string;
  label: string;
  help: string;
  widget: Widget;
  schema: JsonSchema;
  required: boolean;
  /** What stands there when nothing is given, for a placeholder. It is never written. */
  placeholder: string | undefined;
  /** Not shown as it is typed: `format: password`. */
  secret: boolean;
  /** The members of a group. */
  fields: FieldNode[];
  /** The values of fields beside it that it belongs to. */
  arms: Arm[];
}

/** Deeper schemas are edited as YAML: a form so deep helps nobody. */
const DEEPEST = 6;

const SMALL_WORDS = new Map([['url', 'URL'], ['id', 'ID'], ['ttl', 'TTL'], ['ip', 'IP'], ['tls', 'TLS'], ['dns', 'DNS'], ['http', 'HTTP'], ['uri', 'URI'], ['cpu', 'CPU']]);

/** The words of a key: nodePort is "Node port", baseUrl "Base URL". */
export function labelOf(key: string): string {
  const words = key.replace(/([a-z0-9])([A-Z])/g, '$1 $2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2').replace(/[-_]+/g, ' ').trim().split(/\s+/);
  return words.map((word, at) => SMALL_WORDS.get(word.toLowerCase()) ?? (at === 0 ? word.charAt(0).toUpperCase() + word.slice(1) : /^[A-Z]{2,}$/.test(word) ? word : word.toLowerCase())).join(' ');
}

/** A value as it stands in a placeholder. */
export function shown(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined;
}

/** So many entries are shown. */
const MOST = 200;

/** Whether an input has all of a value: it makes a line feed of each carriage return. */
const fits = (value: unknown): boolean => shown(value)?.includes('\r') === false;

/** Whether a widget shows a value whole. If not, it must not write it. */
export function isWhole(widget: Widget, value: unknown): boolean {
  if (value === undefined || value === null || widget === 'yaml') return true;
  switch (widget) {
    case 'group': return isObject(value);
    case 'list': return Array.isArray(value) && value.length <= MOST;
    case 'chips': return Array.isArray(value) && value.length <= MOST && value.every((item) => typeof item === 'string');
    case 'map': return isObject(value) && Object.keys(value).length <= MOST && [...Object.keys(value), ...Object.values(value)].every(fits);
    case 'switch': return typeof value === 'boolean';
    default: return fits(value);
  }
}

const isScalar = ({ type, 'x-kubernetes-int-or-string': either }: JsonSchema): boolean => type === 'string' || type === 'number' || type === 'integer' || either === true;

/** Whether a field is there for objects that have it already. */
export const isDeprecated = ({ description = '' }: JsonSchema): boolean => /^(deprecated|another name)/i.test(description);

/** How values of a schema are edited. */
function widgetOf(schema: JsonSchema, depth: number): Widget {
  if (schema['x-kubernetes-int-or-string']) return 'int-or-string';
  if (depth > DEEPEST || (schema['x-kubernetes-preserve-unknown-fields'] && !schema.properties)) return 'yaml';
  if (schema.enum?.every((value) => typeof value === 'string')) return 'choice';
  switch (schema.type) {
    case 'string': return 'text';
    case 'number':
    case 'integer': return 'number';
    case 'boolean': return 'switch';
    case 'array': {
      const { items } = schema;
      if (!items) return 'yaml';
      if (items.type === 'string' && !items.enum) return 'chips';
      return isScalar(items) || items.type === 'object' || items.enum ? 'list' : 'yaml';
    }
    case 'object': {
      if (schema.properties) return 'group';
      return typeof schema.additionalProperties === 'object' && isScalar(schema.additionalProperties) ? 'map' : 'yaml';
    }
    default: return 'yaml';
  }
}

/** What a schema says besides its description, in words: the ranges that somebody who types wants to know before. */
function limitsOf({ minimum, maximum, type }: JsonSchema): string {
  if (type !== 'integer' && type !== 'number') return '';
  if (minimum !== undefined && maximum !== undefined) return `From ${minimum} to ${maximum}.`;
  if (minimum !== undefined && minimum !== 0) return `At least ${minimum}.`;
  return maximum === undefined ? '' : `At most ${maximum}.`;
}

/** One field, and all that is in it. */
function fieldOf(key: string, schema: JsonSchema, path: Path, required: boolean, depth = 0): FieldNode {
  const widget = widgetOf(schema, depth);
  const help = [schema.description?.replaceAll('`', '') ?? '', limitsOf(schema)].filter(Boolean).join(' ');
  return {
    path, key, widget, schema, required, help, label: labelOf(key), placeholder: shown(schema.default), secret: isPassword(schema),
    fields: widget === 'group' ? membersOf(schema, path, depth + 1) : [], arms: [],
  };
}

/** The members of a group. */
export function membersOf(group: JsonSchema, path: Path, depth: number): FieldNode[] {
  const { properties = {}, required = [] } = group;
  const arms = armsOf(group);
  const fields = Object.entries(properties).map(([key, schema]) => ({ ...fieldOf(key, schema, [...path, key], required.includes(key), depth), arms: arms.filter(({ field }) => field === key) }));
  // What must be given comes first, in the order in which the schema says so: it is the one order that the API server keeps. It sorts the
  // properties themselves by name.
  return [...fields.filter(({ required }) => required).sort((one, other) => required.indexOf(one.key) - required.indexOf(other.key)), ...fields.filter(({ required }) => !required)];
}

/** One entry of a list, as it is shown. */
export function itemOf({ schema, path }: FieldNode, at: number, thing: unknown): FieldNode {
  const item = fieldOf(String(at), schema.items ?? {}, [...path, at], true, path.length);
  return { ...item, fields: shownFields(item.fields, thing) };
}

/** The fields of a kind: the members of its spec, or of the object itself where there is no spec. */
export function fieldsOf(schema: JsonSchema): FieldNode[] {
  const spec = schema.properties?.spec;
  if (spec) {
    const field = fieldOf('spec', spec, ['spec'], schema.required?.includes('spec') ?? false);
    return field.widget === 'group' ? field.fields : [field];
  }
  const { apiVersion, kind, metadata, status, ...rest } = schema.properties ?? {};
  return membersOf({ ...schema, properties: rest }, [], 0);
}

/** The fields that a form shows of an object. What is there is always shown; else neither what is for objects that have it already, nor what
 * belongs to a value that is not chosen. What a group requires must be given where the group itself must, or is there. */
export function shownFields(fields: readonly FieldNode[], thing: unknown, isNeeded = true): FieldNode[] {
  const isThere = (path: Path) => get(thing, path) !== undefined;
  const isShown = ({ schema, path, arms }: FieldNode) => isThere(path) || (!isDeprecated(schema) && arms.every((arm) => !arm.only || isChosen(arm, path, thing)));
  return fields.filter(isShown).map((field) => {
    const required = isNeeded && (field.required || field.arms.some((arm) => arm.needed && isChosen(arm, field.path, thing)));
    return { ...field, required, fields: shownFields(field.fields, thing, required || isThere(field.path)) };
  });
}

/** Whether one of the fields that are shown says what is wrong at a path. */
export function hasPlace(fields: readonly FieldNode[], path: Path, thing: unknown): boolean {
  const field = fields.find((one) => isWithin(path, one.path));
  if (!field || path.length === field.path.length) return field !== undefined;
  const at = path[field.path.length];
  if (field.widget === 'group') return hasPlace(field.fields, path, thing);
  if (field.widget === 'list') return typeof at === 'number' && hasPlace([itemOf(field, at, thing)], path, thing);
  return field.widget === 'chips' || field.widget === 'map' || field.widget === 'yaml';
}

/** An object to look at: what is secret in it nobody reads over a shoulder. */
export function covered(value: unknown, schema: JsonSchema): unknown {
  if (isPassword(schema)) return '<hidden>';
  const cover = (inner: unknown, key: string) => {
    const of = memberOf(schema, key);
    return of ? covered(inner, of) : inner;
  };
  if (Array.isArray(value)) return value.map((item) => cover(item, '0'));
  return isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cover(inner, key)])) : value;
}

/** Whether a value is not shown as it is typed. */
export const isPassword = ({ format }: JsonSchema): boolean => format === 'password';

/** The schema of what has no name of its own in a value: a value of a map, or an item of a list. */
const entryOf = ({ additionalProperties, items }: JsonSchema): JsonSchema | undefined => items ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);

/** The schema of what is in a value: a field of an object, a value of a map, or an item of a list. */
export function memberOf(schema: JsonSchema, key: string): JsonSchema | undefined {
  const { properties = {} } = schema;
  return Object.hasOwn(properties, key) ? properties[key] : entryOf(schema);
}

/** Whether a value has a password in it, or is one. */
export function hasPassword(schema: JsonSchema): boolean {
  const inner = [...Object.values(schema.properties ?? {}), entryOf(schema)];
  return isPassword(schema) || inner.some((one) => one !== undefined && hasPassword(one));
}

/** Every field of a form, groups and their members alike. */
export function flat(fields: readonly FieldNode[]): FieldNode[] {
  return fields.flatMap((field) => [field, ...flat(field.fields)]);
}
