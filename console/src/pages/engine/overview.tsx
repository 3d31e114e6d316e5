// The engine at a glance: what leads, how each Reconciler's roots are, which roots need somebody, and what happened last.
import { useEffect, useState } from 'preact/hooks';
import { call } from '../../api/call';
import type { Host, Json, Kind, Row } from '../../api/generated';
import { asProblem, type Problem } from '../../lib/api';
import { useEvents } from '../../lib/events';
import { kinds, rootHref } from '../../lib/kinds';
import { namespaceShown } from '../../lib/namespace';
import { MODULES, RECONCILER_FIELDS, RECONCILERS, useRows, useRowsOf } from '../../lib/store';
import { href } from '../../lib/router';
import { stream } from '../../lib/stream';
import { Age } from '../../ui/age';
import { Empty, Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { Card, Count, KeyValue, Page, PageHead, Section } from '../../ui/layout';
import { stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { type Column, Table } from '../../ui/table';
import { EventList } from './events-list';
import { reconcilerPage } from './paths';
import { COLUMNS, withRoots } from './reconciler-columns';
import { number } from './shared';

const count = (value: Json | undefined): number => number(value) ?? 0;

/** How many failing roots are shown; the page of their Reconciler has them all. */
const MOST_FAILING = 12;
const MOST_EVENTS = 12;

interface Counted {
  total: number;
  ready: number;
  failing: number;
}

function countsOf({ fields }: Row): Counted {
  return { total: count(fields['status.roots.total']), ready: count(fields['status.roots.ready']), failing: count(fields['status.roots.failing']) };
}

const RECONCILER_COLUMNS = COLUMNS.filter(({ key }) => key !== 'since');

function useHost() {
  const [host, setHost] = useState<Host | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const isLive = stream.value.state === 'open';
  useEffect(() => {
    const stop = new AbortController();
    call('getHost', { signal: stop.signal }).then(setHost, (error: unknown) => {
      if (!stop.signal.aborted) setProblem(asProblem(error));
    });
    return () => stop.abort();
  }, [isLive]);
  return { host, problem };
}

function Leader() {
  const { host, problem } = useHost();
  if (problem && !host) return <ProblemView problem={problem} />;
  if (!host) return <Card><Skeleton lines={3} /></Card>;
  const { leader, unread } = host;
  return (
    <Card>
      <KeyValue items={[
        ['Leader', leader ? <span class="mono">{leader.holder}</span> : unread ? <span class="muted">{unread.why}</span> : <Status tone="warn" label="No host leads: nothing is reconciled" />],
        leader?.since ? ['Leads for', <Age time={leader.since} />] : undefined,
        leader?.renewed ? ['Last seen', <Age time={leader.renewed} ago />] : undefined,
        ['This console', host.version],
      ]} />
    </Card>
  );
}

interface Failing {
  kind: Kind;
  row: Row;
  rank: number;
}

/** The roots that need somebody, worst first and then the newest trouble. */
export function worstOf(found: readonly { kind: Kind; rows: readonly Row[] }[], most: number): { shown: Failing[]; total: number } {
  const failing = found.flatMap(({ kind, rows }) => rows.flatMap((row): Failing[] => {
    const { rank } = stateOf(row);
    return rank <= 1 || (row.ready.status === 'False' && !row.deleting && !row.suspended) ? [{ kind, row, rank }] : [];
  }));
  failing.sort((one, other) => one.rank - other.rank || (other.row.ready.since ?? '').localeCompare(one.row.ready.since ?? '') || one.row.name.localeCompare(other.row.name));
  return { shown: failing.slice(0, most), total: failing.length };
}

const FAILING_COLUMNS: Column<Failing>[] = [
  {
    key: 'name', title: 'Root', width: '30%', cell: ({ kind, row }) => (
      <span class="two-lines">
        <a class="cut" href={rootHref(`${kind.group}/${kind.version}`, kind.kind, row.namespace, row.name) ?? href('/engine')}>{row.name}</a>
        <span class="muted small cut">{kind.kind}{row.namespace && ` in ${row.namespace}`}</span>
      </span>
    ),
  },
  { key: 'state', title: 'State', cell: ({ row }) => <Status row={row} />, width: '130px' },
  { key: 'why', title: 'Why', priority: 2, cell: ({ row }) => <span class="clamp">{row.ready.reason && <strong>{row.ready.reason}: </strong>}{row.ready.message}</span> },
  { key: 'since', title: 'For', end: true, priority: 3, width: '70px', cell: ({ row }) => <Age time={row.ready.since} /> },
];

function FailingRoots({ of }: { of: Row[] }) {
  const wanted = (kinds.value?.items ?? []).filter((kind) => of.some(({ fields }) => fields['spec.for.kind'] === kind.kind && fields['spec.for.apiVersion'] === `${kind.group}/${kind.version}`));
  const namespace = namespaceShown();
  const lists = useRowsOf(wanted, namespace);
  const isPart = namespace !== '' && wanted.some(({ namespaced }) => namespaced);
  const { shown, total } = worstOf(lists.map(({ kind, list }) => ({ kind, rows: list.rows.value })), MOST_FAILING);
  const isLoading = lists.some(({ list }) => list.state.value === 'loading') || kinds.value === null;
  const unseen = lists.flatMap(({ list }) => (list.state.value === 'failed' && list.problem.value ? [list.problem.value] : []));
  if (total === 0 && unseen.length > 0) return <>{unseen.map((problem) => <ProblemView key={problem.detail} problem={problem} />)}</>;
  if (total === 0 && isLoading) return <Skeleton lines={4} />;
  if (total === 0) return isPart ? <p class="muted">None of them is in {namespace}, the namespace that lists show.</p> : <Notice tone="ok">No root is failing any more.</Notice>;
  return (
    <>
      <Table label="Failing roots" rows={shown} columns={FAILING_COLUMNS} rowKey={({ row }) => row.uid} />
      {isPart && <p class="muted">Of kinds with namespaces, only those in {namespace} are shown.</p>}
      {total > shown.length && (
        <p class="muted">
          {(total - shown.length).toLocaleString('en')} more: {of.map(({ name }, index) => <>{index > 0 && ', '}<a href={reconcilerPage(name)}>{name}</a></>)}
        </p>
      )}
    </>
  );
}

function LastEvents() {
  const { events, state, problem } = useEvents();
  const list = events.value;
  if (state.value === 'failed' && problem.value) return <ProblemView problem={problem.value} />;
  if (!list) return <Skeleton lines={5} />;
  if (list.length === 0) return <p class="muted">Nothing has happened lately.</p>;
  return <EventList events={list.slice(0, MOST_EVENTS)} />;
}

export function Overview() {
  const reconcilers = useRows(RECONCILERS, { fields: RECONCILER_FIELDS });
  const modules = useRows(MODULES);
  const list = reconcilers.rows.value;
  const sum = list.map(countsOf).reduce((all, one) => ({ total: all.total + one.total, ready: all.ready + one.ready, failing: all.failing + one.failing }), { total: 0, ready: 0, failing: 0 });
  const failing = list.filter((row) => countsOf(row).failing > 0);
  const unwell = list.filter((row) => stateOf(withRoots(row)).rank <= 1).length;
  const isLoading = reconcilers.state.value === 'loading' && list.length === 0;
  const problem = reconcilers.state.value === 'failed' ? reconcilers.problem.value : null;
  return (
    <Page>
      <PageHead title="Overview" subtitle="What logic is in force, and how the roots that it cares for are." />
      {problem && <ProblemView problem={problem} />}
      {!problem && (
        <div class="counts">
          <Count name={unwell === 0 ? 'Reconcilers' : `Reconcilers, ${unwell} not as they should be`} value={isLoading ? '…' : list.length} tone={unwell > 0 ? 'warn' : undefined} icon={unwell > 0 ? 'alert' : undefined} href={href('/engine/reconcilers')} />
          <Count name="Roots ready" value={isLoading ? '…' : sum.ready} icon="check-circle" tone={sum.ready > 0 ? 'ok' : undefined} />
          <Count name="Roots failing" value={isLoading ? '…' : sum.failing} tone={sum.failing > 0 ? 'bad' : undefined} icon={sum.failing > 0 ? 'cross-circle' : 'check'} />
          <Count name="Modules" value={modules.state.value === 'loading' ? '…' : modules.state.value === 'failed' ? '-' : modules.rows.value.length} href={href('/engine/modules')} />
        </div>
      )}
      <div class="overview">
        <div class="stack loose">
          {!problem && (
            <Section title="Reconcilers">
              {isLoading ? <Skeleton lines={4} /> : list.length === 0
                ? <Empty title="No Reconcilers yet" icon="refresh">A Reconciler binds a kind of resource to a module. It is made with kubectl.</Empty>
                : <Table label="Reconcilers" rows={list} columns={RECONCILER_COLUMNS} rowKey={({ uid }) => uid} />}
            </Section>
          )}
          {failing.length > 0 && <Section title="Failing roots"><FailingRoots of={failing} /></Section>}
        </div>
        <div class="stack loose">
          <Section title="Host"><Leader /></Section>
          <Section title="Last events" actions={<a href={href('/engine/events')}>All events</a>}><LastEvents /></Section>
        </div>
      </div>
    </Page>
  );
}
