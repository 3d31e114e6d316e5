// Every Reconciler: what it is for, what is in force, how its roots are.
import { useMemo, useState } from 'preact/hooks';
import { navigate } from '../../lib/router';
import { RECONCILER_FIELDS, RECONCILERS, useRows } from '../../lib/store';
import { Empty } from '../../ui/feedback';
import { SearchInput } from '../../ui/inputs';
import { Page, PageHead, Toolbar } from '../../ui/layout';
import { VirtualTable } from '../../ui/virtual';
import { ENGINE_PAGE, reconcilerPage } from './paths';
import { COLUMNS } from './reconciler-columns';
import { Listed, text } from './shared';

export function ReconcilersPage() {
  const list = useRows(RECONCILERS, { fields: RECONCILER_FIELDS });
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
