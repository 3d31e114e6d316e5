// The list of a system's objects: searched, narrowed, and live.
import { useMemo } from 'preact/hooks';
import type { Row } from '../../api/generated';
import { useAction } from '../../lib/keys';
import { namespaceShown } from '../../lib/namespace';
import { pageOf } from '../../lib/paths';
import { navigate, queryOf, setQuery, useTitle } from '../../lib/router';
import { useRows } from '../../lib/store';
import { Button, LinkButton } from '../../ui/button';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import { SearchInput, Select } from '../../ui/inputs';
import { Page, PageHead, Toolbar } from '../../ui/layout';
import { stateOf, STATES } from '../../ui/conditions';
import { VirtualTable } from '../../ui/virtual';
import { columnsOf } from './columns';
import { AllowedLink, NamespacePicker, useCanCreate } from './parts';
import type { Schema, System } from './system';

export interface Narrowing {
  search: string;
  state: string;
}

/** The rows that fit: the search looks into the name, the namespace and the fields that the list shows. */
export function narrowed(rows: readonly Row[], { search, state }: Narrowing): readonly Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && state === '') return rows;
  return rows.filter((row) => {
    if (state !== '' && stateOf(row).label !== state) return false;
    if (words.length === 0) return true;
    const text = `${row.name} ${row.namespace ?? ''} ${Object.values(row.fields).map((value) => (typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value))).join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export function SystemList({ system, schema }: { system: System; schema: Schema }) {
  const { kind, many, namespaced } = system;
  const heading = `All ${many}`;
  useTitle(many);
  const namespace = namespaced ? namespaceShown() : '';
  const narrowing: Narrowing = { search: queryOf('search'), state: queryOf('state') };
  const { columns, fields } = useMemo(() => columnsOf(system, schema), [system.home, schema]);
  const { rows, state, problem } = useRows(system, { namespace: namespace || undefined, fields, ahead: true });
  const canCreate = useCanCreate(system, namespace);
  const all = rows.value;
  const fault = state.value === 'failed' ? problem.value : null;
  const found = useMemo(() => narrowed(all, narrowing), [all, narrowing.search, narrowing.state]);
  const newHref = `${system.home}/new`;
  useAction({ id: 'new-here', title: `New ${kind}`, key: 'n', group: 'This page', isHidden: true, run: () => navigate(newHref) });
  const isNarrowed = narrowing.search !== '' || narrowing.state !== '';

  const content = () => {
    if (fault && all.length === 0) return null;
    if (state.value === 'loading' && all.length === 0) return <Skeleton lines={8} />;
    if (all.length === 0) {
      return (
        <Empty title={`No ${many} yet`} actions={canCreate.value && <LinkButton variant="primary" icon="plus" href={newHref}>New {kind}</LinkButton>}>
          {namespace && `There are none in ${namespace}.`}
        </Empty>
      );
    }
    if (found.length === 0) return <Empty icon="search" title="Nothing fits" actions={<Button onClick={() => setQuery({ search: null, state: null })}>Show all</Button>}>{all.length.toLocaleString('en')} do not.</Empty>;
    return <VirtualTable label={heading} rows={found} columns={columns} rowKey={({ uid }) => uid} onOpen={(row) => navigate(pageOf(system, row.namespace, row.name))} initial={{ key: 'name', down: false }} />;
  };

  return (
    <Page>
      <PageHead title={heading} actions={<AllowedLink can={canCreate} what={`create ${many}`} href={newHref} icon="plus" variant="primary">New {kind}</AllowedLink>} />
      <Toolbar label="Filters">
        <SearchInput label="Search" hint="/" value={narrowing.search} onInput={(search) => setQuery({ search })} />
        {namespaced && <NamespacePicker value={namespace} />}
        <span class="picker">
          <Select label="State" value={narrowing.state} options={[{ value: '', label: 'Any state' }, ...STATES.map((label) => ({ value: label, label }))]} onChange={(state) => setQuery({ state })} />
        </span>
        <span class="spacer" />
        <span class="muted small num nowrap" role="status">
          {all.length > 0 && (isNarrowed ? `${found.length.toLocaleString('en')} of ${all.length.toLocaleString('en')}` : all.length.toLocaleString('en'))}
          {state.value === 'loading' && all.length > 0 && ', loading more'}
        </span>
      </Toolbar>
      {fault && <ProblemView problem={fault} />}
      {namespaced && fault?.status === 403 && namespace === '' && <p class="muted">You may be allowed to see one namespace: choose it above.</p>}
      {content()}
    </Page>
  );
}
