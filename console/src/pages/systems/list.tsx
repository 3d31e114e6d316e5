// The list of a system's objects: as cards or as rows, searched, narrowed, and live.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Row } from '../../api/generated';
import { keep, kept } from '../../lib/kept';
import { useAction } from '../../lib/keys';
import type { JsonSchema } from '../../lib/kubernetes';
import { isDarkroom, pageOf } from '../../lib/paths';
import { navigate, queryOf, setQuery, useTitle } from '../../lib/router';
import { useRows } from '../../lib/store';
import { Age } from '../../ui/age';
import { Button, LinkButton } from '../../ui/button';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import { SearchInput, Segment, Select, TextInput } from '../../ui/inputs';
import { Page, PageHead, Toolbar } from '../../ui/layout';
import { stateOf, STATES } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { VirtualGrid, VirtualTable } from '../../ui/virtual';
import { columnsOf } from './columns';
import { AllowedLink, Domains, TypeOf, typeName, useCanCreate } from './parts';
import { type System, useNamespaces } from './system';

export interface Narrowing {
  search: string;
  state: string;
  type: string;
}

const TYPE = 'spec.source.type';

/** The rows that fit: the search looks into the name, the namespace and the fields that the list shows. */
export function narrowed(rows: readonly Row[], { search, state, type }: Narrowing): readonly Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0 && state === '' && type === '') return rows;
  return rows.filter((row) => {
    if (state !== '' && stateOf(row).label !== state) return false;
    if (type !== '' && row.fields[TYPE] !== type) return false;
    if (words.length === 0) return true;
    const text = `${row.name} ${row.namespace ?? ''} ${Object.values(row.fields).map((value) => (typeof value === 'string' ? value : typeof value === 'object' ? JSON.stringify(value) : String(value))).join(' ')}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

type Looks = 'cards' | 'rows';
const LOOKS = 'pintle-sources-as';

const CARD = { width: 300, height: 142 };
const ON_CARD = 2;

function SourceCard({ row, system }: { row: Row; system: System }) {
  const named = row.fields['status.domains'];
  const domains = Array.isArray(named) ? named.length : 0;
  return (
    <article class="source-card">
      <header>
        <h2><a class="cut" href={pageOf(system, row.namespace, row.name)} title={row.name}>{row.name}</a></h2>
        <Status row={row} pill />
      </header>
      <p class="muted small source-facts"><TypeOf type={row.fields[TYPE]} /><span class="cut">{row.namespace}</span><Age time={row.created} /></p>
      <div class="source-domains">
        <span class="muted small">{domains > ON_CARD ? `Domains: ${domains}` : 'Domains:'}</span>
        <Domains domains={row.fields['status.domains']} most={ON_CARD} silent />
      </div>
    </article>
  );
}

function NamespacePicker({ value }: { value: string }) {
  const namespaces = useNamespaces();
  const [typed, type] = useState(value);
  useEffect(() => type(value), [value]);
  const choose = (namespace: string) => setQuery({ namespace });
  if (namespaces === null) {
    return (
      <form class="toolbar" onSubmit={(event) => {
        event.preventDefault();
        choose(typed.trim());
      }}>
        <span class="picker"><TextInput label="Namespace" placeholder="Namespace" value={typed} onInput={type} /></span>
        <Button type="submit">Show</Button>
      </form>
    );
  }
  const names = namespaces ?? [];
  const options = [{ value: '', label: 'All namespaces' }, ...(value !== '' && !names.includes(value) ? [value] : []).concat(names).map((name) => ({ value: name, label: name }))];
  return <span class="picker"><Select label="Namespace" value={value} options={options} onChange={choose} /></span>;
}

/** The page. Its schema tells the columns of kinds that have none of their own. */
export function SystemList({ system, schema }: { system: System; schema?: JsonSchema | undefined }) {
  const { layout, namespaced } = system;
  const hasCards = isDarkroom(system);
  const heading = hasCards ? 'All Sources' : `All ${layout.many}`;
  useTitle(hasCards ? 'All Sources · Darkroom' : layout.many);
  const [looks, setLooks] = useState<Looks>(hasCards && kept(LOOKS) !== 'rows' ? 'cards' : 'rows');
  const namespace = queryOf('namespace');
  const narrowing: Narrowing = { search: queryOf('search'), state: queryOf('state'), type: queryOf('type') };
  const { columns, fields } = useMemo(() => columnsOf(system, schema), [system, schema]);
  const { rows, state, problem } = useRows(system, { namespace: namespace || undefined, fields });
  const canCreate = useCanCreate(system, namespace);
  const all = rows.value;
  const fault = state.value === 'failed' ? problem.value : null;
  const found = useMemo(() => narrowed(all, narrowing), [all, narrowing.search, narrowing.state, narrowing.type]);
  const newHref = `${system.home}/new${namespace ? `?namespace=${encodeURIComponent(namespace)}` : ''}`;
  useAction({ id: 'new-here', title: `New ${layout.one}`, key: 'n', group: 'This page', when: !hasCards, run: () => navigate(newHref) });
  const show = (next: string) => {
    setLooks(next as Looks);
    keep(LOOKS, next);
  };
  const isNarrowed = narrowing.search !== '' || narrowing.state !== '' || narrowing.type !== '';
  const types = [...new Set(all.map((row) => row.fields[TYPE]).filter((type) => typeof type === 'string'))].sort();

  const content = () => {
    if (fault && all.length === 0) return null;
    if (state.value === 'loading' && all.length === 0) return <Skeleton lines={8} />;
    if (all.length === 0) {
      return (
        <Empty icon={layout.icon} title={hasCards ? 'No sources yet!' : `No ${layout.many} yet`} actions={canCreate.value && <LinkButton variant="primary" icon="plus" href={newHref}>New {layout.one}</LinkButton>}>
          {namespace ? `There are none in ${namespace}.` : hasCards ? 'A source serves the images of one web folder or bucket under names of its own.' : ''}
        </Empty>
      );
    }
    if (found.length === 0) return <Empty icon="search" title="Nothing fits" actions={<Button onClick={() => setQuery({ search: null, state: null, type: null })}>Show all</Button>}>{all.length.toLocaleString('en')} do not.</Empty>;
    if (looks === 'cards' && hasCards) return <VirtualGrid label={heading} items={found} itemKey={({ uid }) => uid} width={CARD.width} height={CARD.height} card={(row) => <SourceCard row={row} system={system} />} />;
    return <VirtualTable label={heading} rows={found} columns={columns} rowKey={({ uid }) => uid} onOpen={(row) => navigate(pageOf(system, row.namespace, row.name))} initial={{ key: 'name', down: false }} />;
  };

  return (
    <Page>
      <PageHead title={heading} actions={<AllowedLink can={canCreate} what={`create ${layout.many}`} href={newHref} icon="plus" variant="primary">New {layout.one}</AllowedLink>} />
      <Toolbar label="Filters">
        <SearchInput label="Search" hint="/" value={narrowing.search} onInput={(search) => setQuery({ search })} />
        {namespaced && <NamespacePicker value={namespace} />}
        <span class="picker">
          <Select label="State" value={narrowing.state} options={[{ value: '', label: 'Any state' }, ...STATES.map((label) => ({ value: label, label }))]} onChange={(state) => setQuery({ state })} />
        </span>
        {hasCards && (
          <span class="picker">
            <Select label="Type" value={narrowing.type} options={[{ value: '', label: 'Any type' }, ...types.map((type) => ({ value: type, label: typeName(type) }))]} onChange={(type) => setQuery({ type })} />
          </span>
        )}
        <span class="spacer" />
        <span class="muted small num nowrap" role="status">
          {all.length > 0 && (isNarrowed ? `${found.length.toLocaleString('en')} of ${all.length.toLocaleString('en')}` : all.length.toLocaleString('en'))}
          {state.value === 'loading' && all.length > 0 && ', loading more'}
        </span>
        {hasCards && <Segment label="Shown as" value={looks} options={[{ value: 'cards', label: 'Cards', icon: 'cards' }, { value: 'rows', label: 'Rows', icon: 'list' }]} onChange={show} />}
      </Toolbar>
      {fault && <ProblemView problem={fault} />}
      {namespaced && fault?.status === 403 && namespace === '' && <p class="muted">You may be allowed to see one namespace: choose it above.</p>}
      {content()}
    </Page>
  );
}
