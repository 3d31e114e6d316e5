// What the lists of Reconcilers show of each.
import type { Row } from '../../api/generated';
import { Age } from '../../ui/age';
import { type Stateful, stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import type { Column } from '../../ui/table';
import { reconcilerPage } from './paths';
import { number, text } from './shared';

/** How the roots of a Reconciler are, as counts that can be compared down a column. */
function RootCounts({ fields }: Pick<Row, 'fields'>) {
  const total = number(fields['status.roots.total']);
  const failing = number(fields['status.roots.failing']) ?? 0;
  if (total === undefined) return <span class="muted">-</span>;
  return (
    <span class="num nowrap">
      {(number(fields['status.roots.ready']) ?? 0).toLocaleString('en')}<span class="muted"> of {total.toLocaleString('en')} ready</span>
      {failing > 0 && <span class="tone-bad"> · {failing.toLocaleString('en')} failing</span>}
    </span>
  );
}

/** What the state of a Reconciler is told from: its own conditions, and how its roots are. */
export const withRoots = (row: Row): Stateful => ({ ...row, failing: number(row.fields['status.roots.failing']) });

function ModuleInForce({ fields }: Pick<Row, 'fields'>) {
  const [active, wanted] = [text(fields['status.active.module']), text(fields['spec.module'])];
  return (
    <span class="cut">
      {active ?? <span class="muted">none</span>}
      {wanted && wanted !== active && <span class="tone-warn"> → {wanted}</span>}
    </span>
  );
}

/** The columns, which need `RECONCILER_FIELDS`. */
export const COLUMNS: Column<Row>[] = [
  { key: 'name', title: 'Name', cell: ({ name }) => <a class="cut" href={reconcilerPage(name)}>{name}</a>, sort: (one, other) => one.name.localeCompare(other.name) },
  { key: 'state', title: 'State', cell: (row) => <Status row={withRoots(row)} />, sort: (one, other) => stateOf(withRoots(one)).rank - stateOf(withRoots(other)).rank, width: '132px' },
  { key: 'kind', title: 'For', cell: ({ fields }) => <span class="cut" title={text(fields['spec.for.apiVersion'])}>{text(fields['spec.for.kind'])}</span>, priority: 2 },
  { key: 'module', title: 'Module in force', priority: 3, cell: ({ fields }) => <ModuleInForce fields={fields} /> },
  { key: 'roots', title: 'Roots', cell: ({ fields }) => <RootCounts fields={fields} />, sort: (one, other) => (number(one.fields['status.roots.failing']) ?? 0) - (number(other.fields['status.roots.failing']) ?? 0), width: '210px', priority: 2 },
  { key: 'since', title: 'In force for', cell: ({ fields }) => <Age time={text(fields['status.active.since'])} />, width: '110px', priority: 3, end: true },
];
