// The columns of a list of objects: what every object has, and the printer columns of its kind, as kubectl shows them.
import type { Json, PrinterColumn, Row } from '../../api/generated';
import { hasPassword, isDeprecated, isPassword, labelOf, memberOf, shown } from '../../forms/model';
import { isObject } from '../../forms/path';
import type { JsonSchema } from '../../lib/kubernetes';
import { pageOf } from '../../lib/paths';
import { Age } from '../../ui/age';
import { stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import type { Column } from '../../ui/table';
import type { Schema, System } from './system';

/** How many fields stand in the list of a kind without printer columns. */
const MOST_OWN = 4;
/** So many fields stand among the details. */
const MOST_FACTS = 32;
/** So many the host puts into the rows of a list: FIELDS_MAX in host/console/src/rows.rs. */
const MOST_COLUMNS = 24;

type Way = 'single' | 'list';

const isOf = (way: Way, field: JsonSchema): boolean => (way === 'single'
  ? ['string', 'integer', 'number', 'boolean'].includes(field.type ?? '') || field['x-kubernetes-int-or-string'] === true
  : field.type === 'array' && field.items?.type === 'string') && !isDeprecated(field) && !isPassword(field);

/** The paths of the members of a part that are of a sort, those that must be given first. */
function members(schema: JsonSchema, part: 'spec' | 'status', way: Way): string[] {
  const { properties = {}, required = [] } = schema.properties?.[part] ?? {};
  const found = Object.keys(properties).filter((key) => isOf(way, properties[key] ?? {}) && !(part === 'status' && (key === 'observedGeneration' || /hash|selector|digest/i.test(key))));
  return [...required.filter((key) => found.includes(key)), ...found.filter((key) => !required.includes(key))].map((key) => `${part}.${key}`);
}

/** The fields of a kind that fit into a column: single values, those that must be given first. */
export function obviousFields(schema: JsonSchema): string[] {
  const first = members(schema, 'spec', 'single').slice(0, MOST_OWN - 1);
  const status = members(schema, 'status', 'single').filter((path) => !first.includes(path.replace('status.', 'spec.')));
  return [...first, ...status.slice(0, MOST_OWN - first.length)];
}

const columnOf = (path: string): PrinterColumn => ({ name: labelOf(path.split('.').at(-1) ?? path), type: '', priority: 0, path: `.${path}` });

/** What a list shows of a kind: its printer columns as kubectl does; without any, the fields that fit. */
export function listColumns({ columns, schema }: Pick<Schema, 'columns' | 'schema'>): PrinterColumn[] {
  if (columns.length === 0) return obviousFields(schema).map(columnOf);
  return columns.filter(({ priority, path }) => priority === 0 && !leadsToPassword(schema, path)).slice(0, MOST_COLUMNS);
}

/** What the page of an object shows: all printer columns, and the other fields of which a line is enough. */
export function factColumns({ columns, schema }: Pick<Schema, 'columns' | 'schema'>): PrinterColumn[] {
  const fields = (['spec', 'status'] as const).flatMap((part) => (['single', 'list'] as const).flatMap((way) => members(schema, part, way)));
  const others = fields.map(columnOf).filter(({ path }) => !columns.some((column) => column.path === path));
  return [...columns.filter(({ path }) => !leadsToPassword(schema, path)), ...others].slice(0, MOST_FACTS);
}

const STEP = /^(?:\.((?:\\.|[^.[\\])+)|\[(\d+)\]|\[\?\(@\.([^.=\s]+)\s*==\s*(["'])(.*?)\4\)\])/;

/** Whether what stands at the path of a printer column is a password, or has one in it. */
function leadsToPassword(schema: JsonSchema, path: string): boolean {
  const [whole, name] = STEP.exec(path) ?? [];
  if (whole === undefined || isPassword(schema)) return hasPassword(schema);
  const member = memberOf(schema, nameIn(name ?? '0'));
  return member !== undefined && leadsToPassword(member, path.slice(whole.length));
}

/** The name of a step, in which a backslash takes a letter's meaning away. */
const nameIn = (text: string): string => text.replace(/\\(.)/g, '$1');

/** What stands at the path of a printer column: names, indexes, and the first item of which a field is a text. */
export function atColumn(object: unknown, path: string): Json | undefined {
  let at: unknown = object;
  for (let rest = path; rest !== '';) {
    const step = STEP.exec(rest);
    if (!step) return undefined;
    const [whole, name, index, field = '', , text] = step;
    if (name !== undefined) at = isObject(at) ? at[nameIn(name)] : undefined;
    else if (!Array.isArray(at)) return undefined;
    else at = index === undefined ? at.find((item) => isObject(item) && item[field] === text) : (at[Number(index)] as unknown);
    rest = rest.slice(whole.length);
  }
  return at as Json | undefined;
}

/** A value in a line. */
export function printed(value: Json): string {
  return shown(value) ?? (Array.isArray(value) && value.every((item) => typeof item === 'string') ? value.join(', ') : JSON.stringify(value));
}

/** Names are lower-case ASCII: comparing them as they are is many times faster than by a language's rules, which ten thousand rows would feel. */
const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const byText = (of: (row: Row) => string) => (one: Row, other: Row) => compare(of(one), of(other));

/** Orders values of any kind: numbers by size, the rest by their text. */
function byValue(path: string) {
  return (one: Row, other: Row) => {
    const [a, b] = [one.fields[path], other.fields[path]];
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    return compare(shown(a) ?? '', shown(b) ?? '');
  };
}

/** What a column shows of its object. */
function Value({ type, value }: { type: string; value: Json | undefined }) {
  if (value === undefined || value === null) return <span class="muted">-</span>;
  if (type === 'date') return <Age time={shown(value)} />;
  return <span title={printed(value)}>{printed(value)}</span>;
}

/** The columns of a system's list, and the fields that they need. */
export function columnsOf(system: System, schema: Schema): { columns: Column<Row>[]; fields: string[] } {
  const own = listColumns(schema);
  const columns: Column<Row>[] = [
    { key: 'name', title: 'Name', cell: (row) => <a href={pageOf(system, row.namespace, row.name)} title={row.name}>{row.name}</a>, sort: byText(({ name }) => name) },
    { key: 'state', title: 'State', width: '128px', cell: (row) => <Status row={row} />, sort: (one, other) => stateOf(one).rank - stateOf(other).rank },
    ...(system.namespaced ? [{ key: 'namespace', title: 'Namespace', priority: 2 as const, cell: ({ namespace }: Row) => namespace, sort: byText(({ namespace }) => namespace ?? '') }] : []),
    ...own.map(({ name, type, path }, at): Column<Row> => ({ key: `${name} ${path}`, title: name, priority: at === 0 ? 2 : 3, cell: (row) => <Value type={type} value={row.fields[path]} />, sort: byValue(path) })),
    { key: 'age', title: 'Age', width: '72px', priority: 2, end: true, cell: ({ created }) => <Age time={created} />, sort: (one, other) => compare(other.created, one.created) },
  ];
  return { columns, fields: own.map(({ path }) => path) };
}
