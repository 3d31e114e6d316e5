// How the form of a kind is laid out. A kind without a layout gets its fields in the order of its schema.
import type { IconName } from '../ui/icon';
import type { Option } from '../ui/inputs';
import { type FieldNode, flat, isDeprecated } from './model';
import { get, isWithin, parsePath, pathText, set } from './path';

/** What the form itself remembers beside the object: which of two ways somebody chose. */
export type Choices = Readonly<Record<string, string>>;

export type Thing = Record<string, unknown>;

/** How one field looks, where its schema does not say it well enough. */
export interface Look {
  label?: string;
  help?: string;
  placeholder?: string;
  /** Not shown as it is typed. */
  secret?: boolean;
  /** Not shown beside other things, though it may be seen where it is edited. */
  guarded?: boolean;
  /** Values that are known, for a text that may be another. */
  known?: readonly Option[];
  /** Words and icons for the values of an enum. */
  options?: readonly Option[];
  /** Shares a line with another. */
  half?: boolean;
  /** Needed although the schema alone does not say so. */
  required?: boolean;
}

/** A choice that is no field: which of two groups of fields to fill in. */
export interface Choice {
  label: string;
  help?: string;
  options: readonly Option[];
  /** Which is chosen, as far as the object tells. */
  of: (thing: Thing) => string;
}

export interface Group {
  title: string;
  /** Paths of fields, or `@name` of a choice. */
  fields: readonly string[];
}

export interface Layout {
  /** What one and many of the kind are called. */
  one: string;
  many: string;
  icon: IconName;
  nameLabel: string;
  groups: readonly Group[];
  looks: Readonly<Record<string, Look>>;
  choices: Readonly<Record<string, Choice>>;
  /** Fields that are shown only where something stands in them, besides those that say so themselves. */
  retired: readonly string[];
  /** What a new one begins with. */
  start: Thing;
  when: (field: string, thing: Thing, choices: Choices) => boolean;
  /** The object without what the choices leave out. */
  clean: (thing: Thing, choices: Choices) => Thing;
}

/** The layout of a kind that has none of its own. */
export function plainLayout(kind: string): Layout {
  return {
    one: kind, many: `${kind}s`, icon: 'box', nameLabel: 'Name', groups: [], looks: {}, choices: {}, retired: [], start: {},
    when: () => true, clean: (thing) => thing,
  };
}

/** An object to look at: what is guarded in it nobody reads over a shoulder. */
export function covered(thing: unknown, { looks }: Layout): unknown {
  const guarded = Object.entries(looks).filter(([, { guarded }]) => guarded).map(([path]) => parsePath(path));
  return guarded.reduce((thing, path) => (get(thing, path) === undefined ? thing : set(thing, path, '<hidden>')), thing);
}

/** A part of a form: its title, and what stands in it. */
export interface Part {
  title: string;
  entries: ({ choice: string } | { node: FieldNode })[];
}

const hasValue = (thing: Thing, field: string): boolean => get(thing, parsePath(field)) !== undefined;

/** The parts of a form for what stands in the object now. */
export function partsOf(fields: readonly FieldNode[], layout: Layout, thing: Thing, choices: Choices): Part[] {
  const known = new Map(flat(fields).map((node) => [pathText(node.path), node]));
  const isRetired = (field: string) => layout.retired.includes(field) || isDeprecated(known.get(field)?.schema ?? {});
  const isShown = (field: string) => layout.when(field, thing, choices) && (!isRetired(field) || hasValue(thing, field));
  const placed = layout.groups.flatMap(({ fields }) => fields.filter((field) => known.has(field)).map(parsePath));
  const parts = layout.groups.map(({ title, fields }) => ({
    title,
    entries: fields.filter(isShown).flatMap((field): Part['entries'] => {
      if (field.startsWith('@')) return [{ choice: field }];
      const node = known.get(field);
      return node ? [{ node }] : [];
    }),
  }));
  // A group of which some fields have a place of their own leaves the others to the end.
  const rest = (nodes: readonly FieldNode[]): FieldNode[] => nodes.flatMap((node) => {
    if (placed.some((path) => isWithin(node.path, path))) return [];
    if (placed.some((path) => isWithin(path, node.path))) return rest(node.fields);
    return [node];
  });
  const left = rest(fields).filter(({ path }) => isShown(pathText(path)));
  const entries = left.map((node) => ({ node }));
  if (layout.groups.length === 0) return [{ title: 'Settings', entries }];
  return [...parts, { title: 'More settings', entries }].filter(({ entries }) => entries.length > 0);
}
