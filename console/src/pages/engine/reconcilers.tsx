// Every Reconciler: what it is for, what is in force, how its roots are.
import { useMemo, useState } from 'preact/hooks';
import type { Json, Row } from '../../api/generated';
import { navigate } from '../../lib/router';
import { RECONCILERS, useRows } from '../../lib/store';
import { Age } from '../../ui/age';
import { Empty } from '../../ui/feedback';
import { SearchInput } from '../../ui/inputs';
import { Page, PageHead, Toolbar } from '../../ui/layout';
import { stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { type Column, VirtualTable } from '../../ui/virtual';
import { ENGINE_PAGE, reconcilerPage } from './paths';
import { Listed, number, text } from './shared';

const FIELDS = ['spec.for.kind', 'spec.for.apiVersion', 'spec.module', 'status.active.module', 'status.active.since', 'status.candidate.module', 'status.roots.total', 'status.roots.ready', 'status.roots.failing'];

/** How the roots of a Reconciler are, as counts that can be compared down a column. */
export function RootCounts({ fields }: { fields: Record<string, Json> }) {
  const total = number(fields['status.roots.total']);
  const failing = number(fields['status.roots.failing']) ?? 0;
  if (total === undefined) return <span class="muted">-</span>;
  return (
    <span class="num nowrap">
      {total.toLocaleString('en')}
      {failing > 0 && <span class="tone-bad"> · {failing.toLocaleString('en')} failing</span>}
    </span>
  );
}

const COLUMNS: Column<Row>[] = [
  { key: 'name', title: 'Name', cell: ({ name }) => <a class="cut" href={reconcilerPage(name)}>{name}</a>, sort: (one, other) => one.name.localeCompare(other.name) },
  { key: 'state', title: 'State', cell: (row) => <Status row={row} />, sort: (one, other) => stateOf(one).rank - stateOf(other).rank, width: '132px' },
  { key: 'kind', title: 'For', cell: ({ fields }) => <span class="cut" title={text(fields['spec.for.apiVersion'])}>{text(fields['spec.for.kind'])}</span>, priority: 2 },
  {
    key: 'module',
    title: 'Module in force',
    priority: 3,
    cell: ({ fields }) => {
      const [active, wanted] = [text(fields['status.active.module']), text(fields['spec.module'])];
      return (
        <span class="cut">
          {active ?? <span class="muted">none</span>}
          {wanted && wanted !== active && <span class="tone-warn"> → {wanted}</span>}
        </span>
      );
    },
  },
  { key: 'roots', title: 'Roots', cell: ({ fields }) => <RootCounts fields={fields} />, sort: (one, other) => (number(one.fields['status.roots.failing']) ?? 0) - (number(other.fields['status.roots.failing']) ?? 0), width: '170px', priority: 2 },
  { key: 'since', title: 'In force for', cell: ({ fields }) => <Age time={text(fields['status.active.since'])} />, width: '110px', priority: 3, end: true },
];

export default function ReconcilersPage() {
  const list = useRows(RECONCILERS, { fields: FIELDS });
  const [search, setSearch] = useState('');
  const rows = list.rows.value;
  const shown = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return wanted === '' ? rows : rows.filter(({ name, fields }) => `${name} ${text(fields['spec.for.kind'])} ${text(fields['spec.module'])}`.toLowerCase().includes(wanted));
  }, [rows, search]);
  return (
    <Page>
      <PageHead title="Reconcilers" subtitle="Each binds one kind of resource to a module, with what its logic may do." breadcrumbs={[{ label: 'Engine', href: ENGINE_PAGE }]} />
      <Listed list={list} empty={<Empty title="No Reconcilers yet" icon="swap">A Reconciler is made with kubectl: <code>kubectl apply -f reconciler.yaml</code></Empty>}>
        {() => (
          <>
            {rows.length > 5 && <Toolbar><SearchInput value={search} onInput={setSearch} label="Filter Reconcilers" hint="/" /></Toolbar>}
            <VirtualTable label="Reconcilers" rows={shown} columns={COLUMNS} rowKey={({ name }) => name} onOpen={({ name }) => navigate(reconcilerPage(name))} />
          </>
        )}
      </Listed>
    </Page>
  );
}
