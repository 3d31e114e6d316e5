// The first page: how the objects of all systems are, and what needs somebody.
import { useMemo } from 'preact/hooks';
import type { Kind, Row } from '../../api/generated';
import { kinds, kindsProblem, listableKinds, titleOf } from '../../lib/kinds';
import { namespaceShown } from '../../lib/namespace';
import { homeOf, pageOf } from '../../lib/paths';
import { type Rows, useRowsOf } from '../../lib/store';
import { Age } from '../../ui/age';
import { LinkButton } from '../../ui/button';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import type { IconName } from '../../ui/icon';
import { Count, Page, PageHead, Section, Toolbar } from '../../ui/layout';
import { stateOf, STATES, type Tone } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { Table } from '../../ui/table';
import { NamespacePicker } from './parts';

/** How many of those that need somebody stand on the first page. */
const MOST = 8;

/** So many kinds are read and watched for it. */
const MOST_KINDS = 12;

export interface Counted {
  key: string;
  count: number;
}

/** How many rows there are of each key, in the order of the keys that are given, then by number. */
export function counted(rows: readonly Row[], of: (row: Row) => string, first: readonly string[] = []): Counted[] {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(of(row), (counts.get(of(row)) ?? 0) + 1);
  const rank = (key: string) => (first.includes(key) ? first.indexOf(key) : first.length);
  return [...counts].map(([key, count]) => ({ key, count })).sort((one, other) => rank(one.key) - rank(other.key) || other.count - one.count || one.key.localeCompare(other.key));
}

export interface Needy {
  kind: Kind;
  row: Row;
}

/** What needs somebody, of any kind: failing first, then the longest so. */
export function needy(found: readonly { kind: Kind; rows: readonly Row[] }[]): Needy[] {
  const rank = ({ row }: Needy) => stateOf(row).rank;
  const worst = found.flatMap(({ kind, rows }) => rows.filter((row) => !['Ready', 'Suspended'].includes(stateOf(row).label)).map((row): Needy => ({ kind, row })));
  return worst.sort((one, other) => rank(one) - rank(other) || (one.row.ready.since ?? '').localeCompare(other.row.ready.since ?? ''));
}

const LOOKS: Record<string, [IconName, Tone]> = {
  Failed: ['cross-circle', 'bad'], 'Not ready': ['alert', 'warn'], 'In progress': ['refresh', 'info'], Deleting: ['trash', 'muted'], Suspended: ['pause', 'muted'], Unknown: ['help', 'muted'], Ready: ['check-circle', 'ok'],
};

/** A kind, and how many there are of it. */
function KindCount({ kind, list }: { kind: Kind; list: Rows }) {
  const all = list.rows.value;
  const isUnseen = list.state.value === 'failed' && all.length === 0;
  const worse = all.filter((row) => stateOf(row).rank <= 1).length;
  const many = titleOf(kind);
  return (
    <Count
      name={worse > 0 ? `${many}, ${worse.toLocaleString('en')} not as they should be` : many} value={isUnseen ? '-' : list.state.value === 'loading' && all.length === 0 ? '…' : all.length}
      icon={worse > 0 || isUnseen ? 'alert' : 'box'} tone={worse > 0 || isUnseen ? 'warn' : undefined} href={homeOf(kind)}
    />
  );
}

function Systems({ wanted, isAll }: { wanted: Kind[]; isAll: boolean }) {
  const namespace = namespaceShown();
  const lists = useRowsOf(wanted.slice(0, MOST_KINDS), namespace);
  const found = lists.map(({ kind, list }) => ({ kind, rows: list.rows.value }));
  const all = found.flatMap(({ rows }) => rows);
  const byState = useMemo(() => counted(all, (row) => stateOf(row).label, STATES), found.map(({ rows }) => rows));
  const worst = useMemo(() => needy(found), found.map(({ rows }) => rows));
  const unseen = lists.flatMap(({ list }) => (list.state.value === 'failed' && list.problem.value ? [list.problem.value] : []));
  const isLoading = lists.some(({ list }) => list.state.value === 'loading');
  return (
    <div class="stack loose">
      {unseen.map((problem) => <ProblemView key={problem.detail} problem={problem} />)}
      <Section title="Systems">
        <div class="tiles">{lists.map(({ kind, list }) => <KindCount key={homeOf(kind)} kind={kind} list={list} />)}</div>
        {wanted.length > lists.length && <p class="muted">{wanted.length - lists.length} more kinds are in the menu, and not counted here.</p>}
      </Section>
      {byState.length > 0 && (
        <Section title="By state">
          <div class="tiles">{byState.map(({ key, count }) => <Count key={key} name={key} value={count} icon={LOOKS[key]?.[0]} tone={LOOKS[key]?.[1]} />)}</div>
        </Section>
      )}
      <Section title="Failing first" beside={worst.length > 0 && <span class="badge bad">{worst.length.toLocaleString('en')}</span>}>
        {worst.length > 0 ? (
          <Table
            label="What needs a look"
            rows={worst.slice(0, MOST)}
            rowKey={({ row }) => row.uid}
            columns={[
              { key: 'name', title: 'Name', cell: ({ kind, row }) => <a href={pageOf(kind, row.namespace, row.name)}>{row.name}</a> },
              { key: 'kind', title: 'Kind', priority: 2, cell: ({ kind }) => kind.kind },
              { key: 'state', title: 'State', cell: ({ row }) => <Status row={row} /> },
              { key: 'why', title: 'Why', priority: 2, cell: ({ row }) => <span class="long muted">{stateOf(row).why}</span> },
              { key: 'since', title: 'Since', priority: 3, end: true, cell: ({ row }) => <Age time={row.ready.since} /> },
            ]}
          />
        ) : isLoading ? <Skeleton lines={3} /> : unseen.length > 0 || wanted.length > lists.length || !isAll ? <p class="muted">Of what is seen here, nothing needs a look.</p> : <p class="muted">{all.length === 0 ? 'There are no objects yet.' : 'Everything is as it should be.'}</p>}
      </Section>
    </div>
  );
}

export default function Dashboard() {
  const found = kinds.value;
  const wanted = listableKinds();
  const hidden = (found?.items ?? []).filter(({ mayList }) => !mayList);
  const namespace = namespaceShown();
  return (
    <Page>
      <PageHead title="Dashboard" />
      <Toolbar label="Filters"><NamespacePicker value={namespace} /></Toolbar>
      {!found && (kindsProblem.value ? <ProblemView problem={kindsProblem.value} /> : <Skeleton lines={6} />)}
      {wanted.length > 0 && <Systems wanted={wanted} isAll={hidden.length === 0 && namespace === ''} />}
      {hidden.length > 0 && (
        <p class="muted">
          You lack the right to list {hidden.slice(0, MOST_KINDS).map(({ plural, group }) => `${plural}.${group}`).join(', ')}{hidden.length > MOST_KINDS && ` and ${hidden.length - MOST_KINDS} more kinds`} {namespace ? `in ${namespace}` : 'in all namespaces'}.
          {' '}{namespace ? 'You may have it in another namespace.' : 'You may have it in one namespace: choose it above.'}
        </p>
      )}
      {found && found.items.length === 0 && <Empty icon="module" title="No systems yet" actions={<LinkButton href="/console/engine">The engine</LinkButton>}>{found.unread?.why ?? 'A Reconciler hangs logic on a kind; then the kind stands here.'}</Empty>}
    </Page>
  );
}
