// Which fields of a group belong to one value of a field beside them, as the schema says it: pure, and without CEL but for the rules that are
// written as the CRDs of OpenShift and of the Gateway API write them.
import type { JsonSchema } from '../lib/kubernetes';
import { get, type Path } from './path';

/** What holds between a field and one value of the field beside it that chooses. */
export interface Arm {
  field: string;
  chooser: string;
  value: string;
  /** What holds where nothing is chosen. */
  fallback: unknown;
  /** With another value the field must not be given. */
  only: boolean;
  /** With this value the field must be given. */
  needed: boolean;
}

const IS = String.raw`self\.(?<chooser>\w+)==(?<quote>["'])(?<value>[^"'\\]+)\k<quote>`;
const IS_NOT = IS.replace('==', '!=');
const HAS = String.raw`has\(self\.(?<field>\w+)\)`;
/** A chooser that may be absent: `has(self.type) && self.type == ...`. */
const GUARD = String.raw`(?:has\(self\.(\w+)\)&&(?=self\.\1==))?`;

/** The rules of a union, without the spaces around their words. */
const RULES = ([
  [String.raw`${GUARD}${IS}\?${HAS}:!has\(self\.\k<field>\)`, { only: true, needed: true }],
  [String.raw`${GUARD}${IS}\?${HAS}:true`, { only: false, needed: true }],
  [String.raw`!\(!${HAS}&&${IS}\)`, { only: false, needed: true }],
  [String.raw`!\(${HAS}&&${IS_NOT}\)`, { only: true, needed: false }],
] as const).map(([text, says]) => ({ pattern: new RegExp(`^${text}$`), says }));

/** A rule without its spaces, but for those of its texts. */
const dense = (rule: string): string => rule.replace(/(["'])(?:\\.|(?!\1).)*\1|\s+/g, (part) => part.trim());

const cache = new WeakMap<JsonSchema, Arm[]>();

/** The arms of a group. They are read once: the form of a list draws the group of its items for each of them. */
export function armsOf(group: JsonSchema): Arm[] {
  const arms = cache.get(group) ?? read(group);
  cache.set(group, arms);
  return arms;
}

/** The arms of the group's rules, and that the description of a member begins with a value of an enum beside it, as in
 * `S3: the bucket's name`. */
function read({ properties = {}, 'x-kubernetes-validations': rules = [] }: JsonSchema): Arm[] {
  const members = Object.entries(properties);
  const byRule = rules.map(({ rule }) => dense(rule)).flatMap((rule) => RULES.flatMap(({ pattern, says }) => {
    const { field, chooser = '', value = '' } = pattern.exec(rule)?.groups ?? {};
    return field !== undefined && Object.hasOwn(properties, chooser) ? [{ field, chooser, value, fallback: properties[chooser]?.default, ...says }] : [];
  }));
  const byWord = members.flatMap(([field, { description = '' }]) => members.flatMap(([chooser, { enum: values = [], default: fallback }]) => values.flatMap((value) =>
    (typeof value === 'string' && value !== '' && chooser !== field && description.startsWith(`${value}: `) ? [{ field, chooser, value, fallback, only: true, needed: false }] : []))));
  return [...byRule, ...byWord];
}

/** Whether the chooser of an arm has its value. */
export function isChosen({ chooser, value, fallback }: Arm, path: Path, thing: unknown): boolean {
  return (get(thing, [...path.slice(0, -1), chooser]) ?? fallback) === value;
}
