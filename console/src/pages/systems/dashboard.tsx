// The first page: how the sources are, what needs somebody, and the other systems.
import { useMemo } from 'preact/hooks';
import type { Row } from '../../api/generated';
import { kinds } from '../../lib/kinds';
import { homeOf, isDarkroom, pageOf } from '../../lib/paths';
import { useTitle } from '../../lib/router';
import { RECONCILERS, useRows } from '../../lib/store';
import { Age } from '../../ui/age';
import { LinkButton } from '../../ui/button';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import type { IconName } from '../../ui/icon';
import { Count, Page, PageHead, Section } from '../../ui/layout';
import { stateOf, STATES, type Tone } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { Table } from '../../ui/table';
import { pluralOf } from '../../shell/nav';
import { DARKROOM_FIELDS } from './columns';
import { AllowedLink, TypeOf, typeName, useCanCreate } from './parts';
import { sources } from './system';

/** How many of those that need somebody stand on the first page. */
const MOST = 8;

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

/** What needs somebody: failing first, then the longest so. */
export function needy(rows: readonly Row[]): Row[] {
  const rank = (row: Row) => stateOf(row).rank;
  const worst = rows.filter((row) => !['Ready', 'Suspended'].includes(stateOf(row).label));
  return worst.sort((one, other) => rank(one) - rank(other) || (one.ready.since ?? '').localeCompare(other.ready.since ?? '')).slice(0, MOST);
}

const LOOKS: Record<string, [IconName, Tone]> = {
  Failed: ['cross-circle', 'bad'], 'Not ready': ['alert', 'warn'], 'In progress': ['refresh', 'info'], Deleting: ['trash', 'muted'], Suspended: ['pause', 'muted'], Unknown: ['help', 'muted'], Ready: ['check-circle', 'ok'],
};

function Sources() {
  const { rows, state, problem } = useRows(sources, { fields: DARKROOM_FIELDS });
  const all = rows.value;
  const byState = useMemo(() => counted(all, (row) => stateOf(row).label, STATES), [all]);
  const byType = useMemo(() => counted(all, (row) => String(row.fields['spec.source.type'] ?? ''), ['WebFolder', 'S3']), [all]);
  const worst = useMemo(() => needy(all), [all]);
  if (problem.value && all.length === 0) return <ProblemView problem={problem.value} />;
  if (state.value === 'loading' && all.length === 0) return <Skeleton lines={6} />;
  if (all.length === 0) return <Empty icon="folder" title="No sources yet!" actions={<LinkButton variant="primary" icon="plus" href="/console/sources/new">New Source</LinkButton>}>A source serves the images of one web folder or bucket under names of its own.</Empty>;
  return (
    <div class="stack loose">
      {state.value === 'failed' && problem.value && <ProblemView problem={problem.value} />}
      <Section title="Sources by state">
        <div class="tiles">
          <Count name="All sources" value={all.length} icon="list" href="/console/sources" />
          {byState.map(({ key, count }) => <Count key={key} name={key} value={count} icon={LOOKS[key]?.[0]} tone={LOOKS[key]?.[1]} href={`/console/sources?state=${encodeURIComponent(key)}`} />)}
        </div>
      </Section>
      <Section title="Sources by type">
        <div class="tiles">
          {byType.map(({ key, count }) => <Count key={key} name={typeName(key)} value={count} icon={key === 'S3' ? 'bucket' : 'folder'} href={`/console/sources?type=${encodeURIComponent(key)}`} />)}
        </div>
      </Section>
      <Section title="Failing first" beside={worst.length > 0 && <span class="badge bad">{worst.length === MOST ? `${MOST}+` : worst.length}</span>}>
        {worst.length === 0 ? <p class="muted">Every source is as it should be.</p> : (
          <Table
            label="Sources that need a look"
            rows={worst}
            rowKey={({ uid }) => uid}
            columns={[
              { key: 'name', title: 'Name', cell: (row) => <a href={pageOf(sources, row.namespace, row.name)}>{row.name}</a> },
              { key: 'state', title: 'State', cell: (row) => <Status row={row} /> },
              { key: 'why', title: 'Why', priority: 2, cell: (row) => <span class="long muted">{stateOf(row).why}</span> },
              { key: 'type', title: 'Type', priority: 3, cell: (row) => <TypeOf type={row.fields['spec.source.type']} /> },
              { key: 'since', title: 'Since', priority: 3, end: true, cell: (row) => <Age time={row.ready.since} /> },
            ]}
          />
        )}
      </Section>
    </div>
  );
}

interface Roots {
  total?: number;
  failing?: number;
}

/** The other systems, as their Reconcilers count them: no root is read for this. */
function Others() {
  const { rows } = useRows(RECONCILERS, { fields: ['spec.for', 'spec.module', 'status.active', 'status.candidate', 'status.roots'] });
  const others = (kinds.value?.items ?? []).filter((kind) => !isDarkroom(kind));
  if (others.length === 0) return null;
  return (
    <Section title="Other systems">
      <div class="tiles">
        {others.map((other) => {
          const { kind, reconcilers } = other;
          const roots = rows.value.find(({ name }) => reconcilers.includes(name))?.fields['status.roots'] as Roots | undefined;
          const failing = roots?.failing ?? 0;
          return <Count key={homeOf(other)} name={`${pluralOf(kind)}${failing > 0 ? `, ${failing.toLocaleString('en')} failing` : ''}`} value={roots?.total ?? '-'} icon={failing > 0 ? 'alert' : 'box'} tone={failing > 0 ? 'warn' : undefined} href={homeOf(other)} />;
        })}
      </div>
    </Section>
  );
}

export default function Dashboard() {
  useTitle('Dashboard · Darkroom');
  const found = kinds.value;
  const hasDarkrooms = !found || found.items.some(isDarkroom);
  const canCreate = useCanCreate(sources);
  return (
    <Page>
      <PageHead title="Dashboard" actions={hasDarkrooms && <AllowedLink can={canCreate} what="create sources" href="/console/sources/new" icon="plus" variant="primary">New Source</AllowedLink>} />
      {hasDarkrooms && <Sources />}
      <Others />
      {found && found.items.length === 0 && <Empty icon="module" title="No systems yet" actions={<LinkButton href="/console/engine">The engine</LinkButton>}>{found.unread?.why ?? 'A Reconciler hangs logic on a kind; then the kind stands here.'}</Empty>}
    </Page>
  );
}
