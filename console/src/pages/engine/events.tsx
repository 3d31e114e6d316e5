// What happened lately, to the engine's own objects and to the roots.
import { useMemo, useState } from 'preact/hooks';
import type { ClusterEvent } from '../../api/generated';
import { useEvents } from '../../lib/events';
import { Empty, Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { SearchInput, Select } from '../../ui/inputs';
import { Page, PageHead } from '../../ui/layout';
import { EventList, fits } from './events-list';
import { ENGINE_PAGE } from './paths';
import { count } from './words';

const NONE: readonly ClusterEvent[] = [];

export function EventsPage() {
  const { events, state, problem } = useEvents();
  const [type, setType] = useState('');
  const [namespace, setNamespace] = useState('');
  const [search, setSearch] = useState('');
  const all = events.value ?? NONE;
  const namespaces = useMemo(() => [...new Set(all.map(({ regarding }) => regarding.namespace ?? ''))].filter(Boolean).sort(), [all]);
  const shown = useMemo(() => all.filter((event) => fits(event, { type, namespace, search })), [all, type, namespace, search]);
  return (
    <Page>
      <PageHead title="Events" subtitle="Of Reconcilers, Modules, Views and roots; newest first." breadcrumbs={[{ label: 'Engine', href: ENGINE_PAGE }]} />
      <div class="toolbar" role="group" aria-label="Filter">
        <SearchInput value={search} onInput={setSearch} label="Filter events" hint="/" />
        <Select label="Type" value={type} onChange={setType} options={[{ value: '', label: 'Every type' }, { value: 'Warning', label: 'Warnings' }, { value: 'Normal', label: 'Normal' }]} />
        <Select label="Namespace" value={namespace} onChange={setNamespace} options={[{ value: '', label: 'All namespaces' }, ...namespaces.map((one) => ({ value: one, label: one }))]} />
        <span class="muted small num">{shown.length === all.length ? count(all.length, 'event') : `${shown.length.toLocaleString('en')} of ${count(all.length, 'event')}`}</span>
      </div>
      {state.value === 'stale' && <Notice tone="warn">The connection is interrupted. New events come when it is back.</Notice>}
      {problem.value && state.value === 'failed' ? <ProblemView problem={problem.value} /> : events.value === undefined ? <Skeleton lines={8} /> : shown.length === 0 ? <Empty title={all.length === 0 ? 'Nothing has happened lately' : 'Nothing fits'} icon="activity">{all.length > 0 && 'Change the filter above.'}</Empty> : <EventList events={shown} />}
    </Page>
  );
}
