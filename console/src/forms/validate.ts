// What the browser itself can tell of a value. The server has the last word: it knows rules, and what else is there.
import type { JsonSchema } from '../lib/kubernetes';
import { isEqual, isObject, type Path } from './path';

export interface Fault {
  path: Path;
  message: string;
}

/** Texts longer than this meet no pattern here: a pattern may take long, and the server's takes its time in a bounded way. */
const LONGEST_FOR_PATTERN = 2000;
const MOST = 200;

const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

const INT32 = 2 ** 31;

/** Whether a text is as a pattern wants it; patterns that only the server understands are left to it. */
function fits(pattern: string, text: string): boolean {
  if (text.length > LONGEST_FOR_PATTERN) return true;
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true;
  }
}

function ofString(value: string, { minLength, maxLength, pattern }: JsonSchema): string | undefined {
  const length = [...value].length;
  if (minLength !== undefined && length < minLength) return length === 0 ? 'must not be empty' : `must have at least ${plural(minLength, 'character')}`;
  if (maxLength !== undefined && length > maxLength) return `must have at most ${plural(maxLength, 'character')}; it has ${length}`;
  if (pattern !== undefined && !fits(pattern, value)) return `must match ${pattern}`;
  return undefined;
}

function ofNumber(value: number, { type, format, minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf }: JsonSchema): string | undefined {
  if (type === 'integer' && !Number.isSafeInteger(value)) return 'must be a whole number';
  if (format === 'int32' && (value < -INT32 || value >= INT32)) return `must lie between ${-INT32} and ${INT32 - 1}`;
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) return exclusiveMinimum ? `must be more than ${minimum}` : `must be at least ${minimum}`;
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) return exclusiveMaximum ? `must be less than ${maximum}` : `must be at most ${maximum}`;
  if (multipleOf !== undefined && multipleOf > 0 && Math.abs(value / multipleOf - Math.round(value / multipleOf)) > 1e-9) return `must be a multiple of ${multipleOf}`;
  return undefined;
}

const NAMES: Record<string, string> = { string: 'a text', number: 'a number', integer: 'a whole number', boolean: 'true or false', array: 'a list', object: 'an object' };

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case 'integer':
    case 'number': return typeof value === 'number' && Number.isFinite(value);
    case 'array': return Array.isArray(value);
    case 'object': return isObject(value);
    default: return typeof value === type;
  }
}

/** What is wrong with a value, at most so much as anybody would read. */
export function validate(value: unknown, schema: JsonSchema, path: Path = []): Fault[] {
  const faults: Fault[] = [];
  walk(value, schema, path, faults);
  return faults;
}

function walk(value: unknown, schema: JsonSchema, path: Path, faults: Fault[]): void {
  if (faults.length >= MOST) return;
  const say = (message: string | undefined, at: Path = path) => message !== undefined && faults.push({ path: at, message });
  if (value === null && schema.nullable) return;
  if (schema['x-kubernetes-int-or-string']) {
    if (typeof value !== 'string' && !Number.isSafeInteger(value)) say('must be a whole number or a text');
    return;
  }
  if (schema.type !== undefined && !hasType(value, schema.type)) return void say(`must be ${NAMES[schema.type] ?? schema.type}`);
  if (schema.enum && !schema.enum.some((one) => isEqual(one, value))) return void say(`must be one of ${schema.enum.map((one) => String(one)).join(', ')}`);
  if (typeof value === 'string') say(ofString(value, schema));
  else if (typeof value === 'number') say(ofNumber(value, schema));
  else if (Array.isArray(value)) walkList(value, schema, path, faults);
  else if (isObject(value)) walkObject(value, schema, path, faults);
}

function walkList(list: readonly unknown[], schema: JsonSchema, path: Path, faults: Fault[]): void {
  const { minItems, maxItems, items, uniqueItems, 'x-kubernetes-list-type': listType, 'x-kubernetes-list-map-keys': keys = [] } = schema;
  if (minItems !== undefined && list.length < minItems) faults.push({ path, message: minItems === 1 ? 'needs at least one' : `needs at least ${minItems}` });
  if (maxItems !== undefined && list.length > maxItems) faults.push({ path, message: `may have at most ${maxItems}; it has ${list.length}` });
  const key = listType === 'map' ? (item: unknown) => JSON.stringify(keys.map((key) => (isObject(item) ? item[key] : undefined))) : JSON.stringify;
  if (uniqueItems || listType === 'set' || listType === 'map') {
    const seen = new Set<string>();
    list.forEach((item, at) => {
      const text = key(item);
      if (seen.has(text)) faults.push({ path: [...path, at], message: 'stands there twice' });
      seen.add(text);
    });
  }
  if (items) list.slice(0, 1000).forEach((item, at) => walk(item, items, [...path, at], faults));
}

function walkObject(object: Record<string, unknown>, schema: JsonSchema, path: Path, faults: Fault[]): void {
  const { properties = {}, required = [], additionalProperties, minProperties, maxProperties } = schema;
  for (const name of required) {
    if (object[name] !== undefined) continue;
    const inner = properties[name];
    const before = faults.length;
    // Of a group that is missing, its own fields are named: these are what somebody can fill in.
    if (inner?.type === 'object' && inner.default === undefined) walk({}, inner, [...path, name], faults);
    if (faults.length === before && inner?.default === undefined) faults.push({ path: [...path, name], message: 'is required' });
  }
  const count = Object.keys(object).length;
  if (minProperties !== undefined && count < minProperties) faults.push({ path, message: minProperties === 1 ? 'needs at least one' : `needs at least ${minProperties}` });
  if (maxProperties !== undefined && count > maxProperties) faults.push({ path, message: `may have at most ${maxProperties}` });
  for (const [name, inner] of Object.entries(object)) {
    if (inner === undefined) continue;
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (known) walk(inner, known, [...path, name], faults);
    else if (typeof additionalProperties === 'object') walk(inner, additionalProperties, [...path, name], faults);
    else if (schema.properties && additionalProperties === undefined && !schema['x-kubernetes-preserve-unknown-fields']) faults.push({ path: [...path, name], message: 'is not a field of this kind' });
  }
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** What is wrong with the name of an object. */
export function validateName(name: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return 'is required';
  if (name.length > 253) return 'must have at most 253 characters';
  return LABEL.test(name) ? undefined : "must be lower-case letters, digits, '-' and '.', and begin and end with a letter or digit";
}

/** The words of a server's cause: what stands around them the page already shows. */
export function wordsOf(message: string): string {
  return message
    .replace(/^Invalid value: (?:"(?:[^"\\]|\\.)*"|\S+?|\{.*?\}|\[.*?\]): /s, '')
    .replace(/^Invalid value: /, '')
    .replace(/^Required value(?:: )?/, (all) => (all.endsWith(': ') ? '' : 'is required'))
    .replace(/^Unsupported value: (.*?): supported values: /s, 'must be one of ')
    .replace(/^Duplicate value: .*$/s, 'stands there twice')
    .replace(/^Too long: may not be (?:longer|more) than (\d+)(?: characters| bytes)?$/, 'must have at most $1 characters');
}
