// The columns of a list of objects: what every object has, and what is worth a column of its kind's own fields.
import type { Json, Row } from '../../api/generated';
import { isDeprecated, labelOf, shown } from '../../forms/model';
import type { JsonSchema } from '../../lib/kubernetes';
import { isDarkroom, pageOf } from '../../lib/paths';
import { Age } from '../../ui/age';
import { stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import type { Column } from '../../ui/table';
import { Domains, TypeOf } from './parts';
import type { System } from './system';

/** How many of a kind's own fields stand in its list. */
const MOST_OWN = 4;

/** The fields of a kind that fit into a column: single values, those that must be given first. */
export function obviousFields(schema: JsonSchema): string[] {
  const single = (field: JsonSchema) => (['string', 'integer', 'number', 'boolean'].includes(field.type ?? '') || field['x-kubernetes-int-or-string'] === true) && !isDeprecated(field);
  const { properties = {}, required = [] } = schema.properties?.spec ?? {};
  const spec = Object.entries(properties).filter(([, field]) => single(field)).map(([key]) => key);
  const first = [...spec.filter((key) => required.includes(key)), ...spec.filter((key) => !required.includes(key))].slice(0, MOST_OWN - 1);
  const status = Object.entries(schema.properties?.status?.properties ?? {}).filter(([key, field]) => single(field) && key !== 'observedGeneration' && !first.includes(key) && !/hash|selector|digest/i.test(key)).map(([key]) => key);
  return [...first.map((key) => `spec.${key}`), ...status.slice(0, MOST_OWN - first.length).map((key) => `status.${key}`)];
}

export const DARKROOM_FIELDS = ['spec.source.type', 'spec.source.baseUrl', 'spec.source.bucket', 'spec.version', 'spec.subDomains', 'status.domains'];

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

function Value({ value }: { value: Json | undefined }) {
  const text = value === undefined ? undefined : (shown(value) ?? JSON.stringify(value));
  return text === undefined ? <span class="muted">-</span> : <span title={text}>{text}</span>;
}

const common = (system: System): { name: Column<Row>; state: Column<Row>; namespace: Column<Row>[]; age: Column<Row> } => ({
  name: { key: 'name', title: 'Name', cell: (row) => <a href={pageOf(system, row.namespace, row.name)} title={row.name}>{row.name}</a>, sort: byText(({ name }) => name) },
  state: { key: 'state', title: 'State', width: '128px', cell: (row) => <Status row={row} />, sort: (one, other) => stateOf(one).rank - stateOf(other).rank },
  namespace: system.namespaced ? [{ key: 'namespace', title: 'Namespace', priority: 2, cell: ({ namespace }) => namespace, sort: byText(({ namespace }) => namespace ?? '') }] : [],
  age: { key: 'age', title: 'Age', width: '72px', priority: 2, end: true, cell: ({ created }) => <Age time={created} />, sort: (one, other) => compare(other.created, one.created) },
});

/** The columns of a system's list, and the fields that they need. */
export function columnsOf(system: System, schema: JsonSchema | undefined): { columns: Column<Row>[]; fields: string[] } {
  const { name, state, namespace, age } = common(system);
  if (isDarkroom(system)) {
    const columns: Column<Row>[] = [
      name, state, ...namespace,
      { key: 'type', title: 'Type', width: '128px', priority: 2, cell: (row) => <TypeOf type={row.fields['spec.source.type']} />, sort: byValue('spec.source.type') },
      { key: 'domains', title: 'Domains', width: '28%', priority: 3, cell: (row) => <Domains domains={row.fields['status.domains']} most={1} /> },
      { key: 'version', title: 'Version', width: '84px', priority: 3, cell: (row) => <Value value={row.fields['spec.version']} />, sort: byValue('spec.version') },
      age,
    ];
    return { columns, fields: DARKROOM_FIELDS };
  }
  const fields = schema ? obviousFields(schema) : [];
  const own = fields.map((path, at): Column<Row> => ({
    key: path, title: labelOf(path.split('.').at(-1) ?? path), priority: at === 0 ? 2 : 3, cell: (row) => <Value value={row.fields[path]} />, sort: byValue(path),
  }));
  return { columns: [name, state, ...namespace, ...own, age], fields };
}
