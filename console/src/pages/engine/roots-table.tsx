// The roots of a Reconciler, live; those that need somebody stand first.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Kind, Row } from '../../api/generated';
import { kindOf, kinds, kindsProblem, readKinds } from '../../lib/kinds';
import { rootPage } from '../../lib/paths';
import { navigate } from '../../lib/router';
import { useRows } from '../../lib/store';
import { Age } from '../../ui/age';
import { Empty, Notice, Skeleton } from '../../ui/feedback';
import { SearchInput, Select } from '../../ui/inputs';
import { STATES, stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { beginning } from '../../ui/text';
import { type Column, VirtualTable } from '../../ui/virtual';
import { Listed } from './shared';
import { count } from './words';

/** The kind of an apiVersion and a kind; undefined while it is asked for, null when the caller may not know it. */
function useKind({ apiVersion, kind }: { apiVersion: string; kind: string }): Kind | null | undefined {
  const found = kindOf(apiVersion, kind);
  const isMissing = found === undefined;
  useEffect(() => {
    if (isMissing) void readKinds();
  }, [isMissing, apiVersion, kind]);
  if (found) return found;
  return kinds.value || kindsProblem.value ? null : undefined;
}

export function Roots({ reference }: { reference: { apiVersion: string; kind: string } }) {
  const kind = useKind(reference);
  if (kind === undefined) return <Skeleton lines={6} />;
  if (kind === null) return <Notice tone="info">You may not list {reference.kind} objects, or the API server does not serve them.</Notice>;
  return <RootsOf kind={kind} />;
}

/** Why a root is not ready: its reason and message, unless they are about what it was before. */
function Why(row: Row) {
  const { tone, why } = stateOf(row);
  if (tone === 'ok') return <span class="muted">-</span>;
  const { reason, current } = row.ready;
  return <span class="cut" title={why}>{current && reason} <span class="muted">{beginning(why, 300)}</span></span>;
}

function columnsOf(kind: Kind): Column<Row>[] {
  const byName = (one: Row, other: Row) => one.name.localeCompare(other.name) || (one.namespace ?? '').localeCompare(other.namespace ?? '');
  return [
    { key: 'name', title: 'Name', cell: ({ namespace, name }) => <a class="cut" href={rootPage(kind, namespace, name)}>{name}</a>, sort: byName },
    { key: 'state', title: 'State', cell: (row) => <Status row={row} />, sort: (one, other) => stateOf(one).rank - stateOf(other).rank || byName(one, other), width: '124px' },
    ...(kind.namespaced ? [{ key: 'namespace', title: 'Namespace', cell: ({ namespace }: Row) => <span class="cut">{namespace}</span>, sort: (one: Row, other: Row) => (one.namespace ?? '').localeCompare(other.namespace ?? '') || byName(one, other), priority: 2 as const }] : []),
    { key: 'why', title: 'Why', cell: Why, width: '42%', priority: 3 },
    { key: 'since', title: 'Since', cell: ({ ready }) => <Age time={ready.since} />, sort: (one, other) => (other.ready.since ?? '').localeCompare(one.ready.since ?? ''), width: '92px', end: true, priority: 3 },
  ];
}

function RootsOf({ kind }: { kind: Kind }) {
  const list = useRows(kind);
  const rows = list.rows.value;
  const [search, setSearch] = useState('');
  const [state, setState] = useState('');
  const [namespace, setNamespace] = useState('');
  const namespaces = useMemo(() => [...new Set(rows.map((row) => row.namespace ?? ''))].filter(Boolean).sort(), [rows]);
  const counts = useMemo(() => {
    const found = new Map<string, number>();
    for (const row of rows) {
      const { label } = stateOf(row);
      found.set(label, (found.get(label) ?? 0) + 1);
    }
    return found;
  }, [rows]);
  const shown = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return rows.filter((row) => (namespace === '' || row.namespace === namespace) && (state === '' || stateOf(row).label === state) && (wanted === '' || `${row.namespace ?? ''}/${row.name}`.toLowerCase().includes(wanted)));
  }, [rows, search, state, namespace]);
  const columns = useMemo(() => columnsOf(kind), [kind]);
  return (
    <div class="stack">
      <Listed list={list} empty={<Empty title={`No ${kind.kind} yet`} icon="box" />}>
        {() => (
          <>
            <div class="toolbar" role="group" aria-label="Filter">
              <SearchInput value={search} onInput={setSearch} label={`Filter by name`} hint="/" />
              <Select label="State" value={state} onChange={setState} options={[{ value: '', label: 'Every state' }, ...STATES.filter((one) => counts.has(one)).map((one) => ({ value: one, label: `${one} (${counts.get(one)?.toLocaleString('en')})` }))]} />
              {namespaces.length > 1 && <Select label="Namespace" value={namespace} onChange={setNamespace} options={[{ value: '', label: 'All namespaces' }, ...namespaces.map((one) => ({ value: one, label: one }))]} />}
              <span class="muted small num" role="status">{shown.length === rows.length ? count(rows.length, 'root') : `${shown.length.toLocaleString('en')} of ${count(rows.length, 'root')}`}</span>
            </div>
            {shown.length === 0 ? <Empty title="Nothing fits" icon="search">Change the filter above.</Empty> : <VirtualTable label="Roots" rows={shown} columns={columns} rowKey={({ uid }) => uid} initial={{ key: 'state', down: false }} onOpen={({ namespace: where, name }) => navigate(rootPage(kind, where, name))} />}
          </>
        )}
      </Listed>
    </div>
  );
}
