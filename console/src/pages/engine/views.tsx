// Every View: the kind that it serves, from what, and whether it does.
import type { Row } from '../../api/generated';
import type { ViewSpec, ViewStatus } from '../../lib/kubernetes';
import { navigate, queryOf, setQuery } from '../../lib/router';
import { useObject, useRows, VIEWS } from '../../lib/store';
import { Age } from '../../ui/age';
import { Dialog } from '../../ui/dialog';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import { KeyValue, Page, PageHead, Section } from '../../ui/layout';
import { Blocker, Conditions } from '../../ui/condition-list';
import { statefulOf, stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { type Column, VirtualTable } from '../../ui/virtual';
import { Config } from './config-view';
import { ENGINE_PAGE, VIEWS_PAGE } from './paths';
import { Listed, ModuleRef, Tags, text } from './shared';
import { whoReads } from './words';

const FIELDS = ['spec.module', 'spec.view', 'spec.serve.rest.path', 'status.active.module', 'status.active.since', 'status.served.apiVersion', 'status.served.kind', 'status.served.backing.kind'];

/** Where a View is served, in words. */
function place(fields: Row['fields']): string {
  const rest = text(fields['spec.serve.rest.path']);
  if (rest) return rest;
  const kind = text(fields['status.served.kind']);
  return kind ? `${kind} (${text(fields['status.served.apiVersion']) ?? ''})` : 'aggregated API';
}

const COLUMNS: Column<Row>[] = [
  { key: 'name', title: 'Name', cell: ({ name }) => <a class="cut" href={`${VIEWS_PAGE}?name=${encodeURIComponent(name)}`}>{name}</a>, sort: (one, other) => one.name.localeCompare(other.name) },
  { key: 'state', title: 'State', cell: (row) => <Status row={row} />, sort: (one, other) => stateOf(one).rank - stateOf(other).rank, width: '132px' },
  { key: 'served', title: 'Served at', cell: ({ fields }) => <span class="cut mono">{place(fields)}</span>, priority: 2 },
  { key: 'backing', title: 'From', cell: ({ fields }) => <span class="cut">{text(fields['status.served.backing.kind']) ?? <span class="muted">-</span>}</span>, priority: 3 },
  { key: 'module', title: 'Module', cell: ({ fields }) => <span class="cut">{text(fields['status.active.module']) ?? text(fields['spec.module'])}</span>, priority: 2 },
  { key: 'since', title: 'In force for', cell: ({ fields }) => <Age time={text(fields['status.active.since'])} />, width: '110px', priority: 3, end: true },
];

function ViewDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const { object, problem } = useObject(VIEWS, null, name);
  const view = object.value;
  const spec = (view?.spec ?? {}) as unknown as ViewSpec;
  const status = (view?.status ?? {}) as unknown as ViewStatus;
  const { served, active, candidate } = status;
  return (
    <Dialog wide title={name} onClose={onClose}>
      {problem.value && <ProblemView problem={problem.value} />}
      {view === null && <Empty title="It has been deleted" />}
      {view === undefined && !problem.value && <Skeleton />}
      {view && (
        <>
          <div><Status pill row={statefulOf(view)} /></div>
          <Blocker object={view} />
          <KeyValue
            items={[
              ['View', <span><strong>{spec.view}</strong> of <ModuleRef name={active?.module ?? spec.module} digest={active?.digest} /></span>],
              candidate ? ['Waiting', <span><ModuleRef name={candidate.module} /> {candidate.reason} {candidate.message}</span>] : undefined,
              ['Served at', <code>{spec.serve?.rest?.path ?? (served?.kind ? `${served.apiVersion ?? ''} ${served.kind}` : 'aggregated API')}</code>],
              ['Verbs', <Tags items={served?.verbs ?? spec.verbs ?? []} empty="all" />],
              served?.backing ? ['From', `${served.backing.kind} (${served.backing.apiVersion})`] : undefined,
              served?.reads?.length ? ['Reads', <Tags items={served.reads} />] : undefined,
              served?.writes?.length ? ['Writes', <Tags items={served.writes} />] : undefined,
              ['As', whoReads(spec)],
              active?.epoch === undefined ? undefined : ['Epoch', <span class="num">{active.epoch}</span>],
              ['Config', <Config value={active?.config ?? spec.config} />],
            ]}
          />
          <Section title="Conditions"><Conditions object={view} /></Section>
        </>
      )}
    </Dialog>
  );
}

export function ViewsPage() {
  const list = useRows(VIEWS, { fields: FIELDS });
  const open = queryOf('name');
  return (
    <Page>
      <PageHead title="Views" subtitle="Kinds that the gateway serves, and that a guest computes from another kind." breadcrumbs={[{ label: 'Engine', href: ENGINE_PAGE }]} />
      <Listed list={list} empty={<Empty title="No Views yet" icon="eye">A View is made with kubectl, and served by <code>pintle gateway</code>.</Empty>}>
        {() => <VirtualTable label="Views" rows={list.rows.value} columns={COLUMNS} rowKey={({ name }) => name} onOpen={({ name }) => navigate(`${VIEWS_PAGE}?name=${encodeURIComponent(name)}`, { quiet: true })} />}
      </Listed>
      {open && <ViewDialog key={open} name={open} onClose={() => setQuery({ name: null })} />}
    </Page>
  );
}
