// One object of a system: how it is, what it made, what happened, and what can be done.
import { useMemo, useState } from 'preact/hooks';
import type { Child, Json } from '../../api/generated';
import { callObject } from '../../api/objects';
import { covered } from '../../forms/layout';
import { get, isObject, parsePath } from '../../forms/path';
import { labelOf, shown } from '../../forms/model';
import { asProblem, type Problem } from '../../lib/api';
import { useCan } from '../../lib/can';
import { useChildChanges } from '../../lib/children';
import { useObjectEvents } from '../../lib/events';
import { useAction } from '../../lib/keys';
import type { JsonSchema, K8sObject } from '../../lib/kubernetes';
import { isDarkroom, pageOf, rootPage } from '../../lib/paths';
import { useRead } from '../../lib/read';
import { navigate, queryOf, setQuery, useTitle } from '../../lib/router';
import { useObject } from '../../lib/store';
import { Age } from '../../ui/age';
import { LinkButton } from '../../ui/button';
import { ConfirmByName } from '../../ui/dialog';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import { Card, KeyValue, Page, PageHead, Section } from '../../ui/layout';
import { Blocker, Conditions } from '../../ui/condition-list';
import { statefulOf, toneOf } from '../../ui/conditions';
import { Icon } from '../../ui/icon';
import { Status } from '../../ui/status';
import { type Column, Table } from '../../ui/table';
import { beginning } from '../../ui/text';
import { Tabs } from '../../ui/tabs';
import { toast } from '../../ui/toast';
import { VirtualTable } from '../../ui/virtual';
import { YamlView } from '../../ui/yaml';
import { EventsOf } from '../engine/events-list';
import { obviousFields } from './columns';
import { AllowedButton, AllowedLink, Domains, TypeOf } from './parts';
import type { System } from './system';

interface DetailProps {
  system: System;
  schema?: JsonSchema | undefined;
  namespace: string | null;
  name: string;
}

export function SystemDetail({ system, schema, namespace, name }: DetailProps) {
  const { layout, group, plural } = system;
  useTitle(isDarkroom(system) ? `${name} · Darkroom` : name);
  const { object, problem } = useObject(system, namespace, name);
  const check = { group, resource: plural, name, ...(namespace ? { namespace } : {}) };
  const canUpdate = useCan({ ...check, verb: 'patch' });
  const canDelete = useCan({ ...check, verb: 'delete' });
  const [isDeleting, setDeleting] = useState(false);
  const edit = `${pageOf(system, namespace, name)}/edit`;
  useAction({ id: 'edit-here', title: `Edit ${name}`, key: 'e', group: 'This page', when: canUpdate.value === true, run: () => navigate(edit) });
  const crumbs = [{ label: isDarkroom(system) ? 'Sources' : layout.many, href: system.home }];

  const found = object.value;
  if (found === undefined || found === null) {
    return (
      <Page>
        <PageHead title={name} breadcrumbs={crumbs} />
        {problem.value && problem.value.status !== 404 ? <ProblemView problem={problem.value} />
          : found === null || problem.value ? <Empty icon={layout.icon} title={`There is no ${layout.one} ${name}`} actions={<LinkButton href={system.home}>All {layout.many}</LinkButton>}>{namespace ? `Not in ${namespace}, or no longer.` : 'Or no longer.'}</Empty>
          : <Skeleton lines={8} />}
      </Page>
    );
  }
  const state = statefulOf(found);
  const tab = queryOf('tab') || 'overview';
  return (
    <Page>
      <PageHead
        title={name}
        breadcrumbs={crumbs}
        beside={<span role="status"><Status row={state} pill title="" /></span>}
        actions={
          <>
            <LinkButton href={rootPage(system, namespace, name)} icon="tree" variant="quiet">Logic</LinkButton>
            <AllowedLink can={canUpdate} what={`change this ${layout.one}`} href={edit} icon="edit">Edit</AllowedLink>
            <AllowedButton can={canDelete} what={`delete this ${layout.one}`} icon="trash" onClick={() => setDeleting(true)}>Delete</AllowedButton>
          </>
        }
      />
      <Blocker object={found} />
      <Tabs label="About it" value={tab} onChange={(key) => setQuery({ tab: key === 'overview' ? null : key })} tabs={[{ key: 'overview', label: 'Overview' }, { key: 'events', label: 'Events' }, { key: 'yaml', label: 'YAML' }]}>
        {tab === 'yaml' ? <Yaml object={found} system={system} />
          : tab === 'events' ? <Events system={system} namespace={namespace} name={name} />
          : <Overview object={found} system={system} schema={schema} namespace={namespace} name={name} />}
      </Tabs>
      {isDeleting && <Delete system={system} object={found} onClose={() => setDeleting(false)} />}
    </Page>
  );
}

function Overview({ object, system, schema, namespace, name }: { object: K8sObject } & DetailProps) {
  return (
    <div class="columns">
      <div class="stack loose">
        <Made object={object} system={system} namespace={namespace} name={name} />
        <Section title="Conditions"><Conditions object={object} /></Section>
      </div>
      <Card>
        <Section title="Details"><Facts object={object} system={system} schema={schema} /></Section>
      </Card>
    </div>
  );
}

const at = (object: K8sObject, path: string): Json | undefined => get(object, parsePath(path)) as Json | undefined;

function Facts({ object, system, schema }: { object: K8sObject; system: System; schema?: JsonSchema | undefined }) {
  const { namespace, creationTimestamp } = object.metadata;
  const text = (label: string, value: Json | undefined) => (value === undefined ? undefined : ([label, <span class="wrap">{beginning(shown(value) ?? JSON.stringify(value), 400)}</span>] as const));
  const own = isDarkroom(system) ? [
    ['Type', <TypeOf type={at(object, 'spec.source.type')} />] as const,
    text('Base URL', at(object, 'spec.source.baseUrl')), text('S3 Bucket', at(object, 'spec.source.bucket')), text('Region', at(object, 'spec.source.region')),
    text('Path Prefix', at(object, 'spec.source.pathPrefix')), text('Endpoint', at(object, 'spec.source.endpoint')), text('Secret', at(object, 'spec.source.credentialsSecretRef.name')),
    ['Domains', <Domains domains={at(object, 'status.domains')} most={64} />] as const,
    text('Version', at(object, 'spec.version')), text('Cache TTL (seconds)', at(object, 'spec.cache.ttlSeconds')),
  ] : (schema ? obviousFields(schema) : []).map((path) => text(system.layout.looks[path]?.label ?? labelOf(path.split('.').at(-1) ?? path), at(object, path)));
  return <KeyValue items={[...(namespace ? [['Namespace', namespace] as const] : []), ...own, ['Created', <Age time={creationTimestamp} ago />]]} />;
}

function childState({ deleting, ready }: Child) {
  if (deleting) return <Status tone="muted" label="Deleting" icon="trash" />;
  return <Status tone={toneOf(ready.status)} label={ready.status === 'True' ? 'Ready' : ready.status === 'False' ? 'Not ready' : 'Unknown'} title={ready.message ?? undefined} />;
}

const CHILD_COLUMNS: Column<Child>[] = [
  { key: 'kind', title: 'Kind', cell: ({ kind }) => <span class="nowrap">{kind}</span> },
  { key: 'name', title: 'Name', cell: (child) => <><span class="wrap">{child.name}</span>{child.ready.status === 'False' && child.ready.message && <div class="muted small long">{beginning(child.ready.message)}</div>}</> },
  { key: 'state', title: 'State', cell: childState },
  { key: 'age', title: 'Age', priority: 2, end: true, cell: ({ created }) => <Age time={created} /> },
];

/** So many children are drawn as they are scrolled to. */
const MANY = 200;

/** The objects that it made, those that are not ready first. */
function Made({ object, system, namespace, name }: { object: K8sObject; system: System; namespace: string | null; name: string }) {
  const { uid, resourceVersion } = object.metadata;
  const [changes, setChanges] = useState(0);
  const { value, problem } = useRead('listChildren', { ...system, namespace, name }, { version: `${resourceVersion} ${changes}` });
  useChildChanges(value, uid, () => setChanges((before) => before + 1));
  const rank = ({ ready }: Child) => (ready.status === 'False' ? 0 : ready.status === 'Unknown' ? 1 : 2);
  const items = useMemo(() => [...(value?.items ?? [])].sort((one, other) => rank(one) - rank(other) || one.kind.localeCompare(other.kind) || one.name.localeCompare(other.name)), [value]);
  return (
    <Section title="What it made" beside={value && <span class="badge">{items.length}</span>}>
      {problem && <ProblemView problem={problem} />}
      {!value && !problem && <Skeleton lines={4} />}
      {value && items.length === 0 && <p class="muted">Nothing yet.</p>}
      {items.length > MANY ? <VirtualTable label="What it made" rows={items} rowKey={({ uid }) => uid} columns={CHILD_COLUMNS} />
        : items.length > 0 && <Table label="What it made" rows={items} rowKey={({ uid }) => uid} columns={CHILD_COLUMNS} />}
      {value?.unread.map(({ apiVersion, kind, why }) => <p key={`${apiVersion} ${kind}`} class="muted small"><Icon name="lock" /> {kind}: {beginning(why)}</p>)}
    </Section>
  );
}

function Events({ system, namespace, name }: { system: System; namespace: string | null; name: string }) {
  return <EventsOf {...useObjectEvents(system, namespace, name)} />;
}

/** The object as it is, without what nobody should read over a shoulder. */
function Yaml({ object, system }: { object: K8sObject; system: System }) {
  const value = useMemo(() => covered(object, system.layout), [object, system]);
  return isObject(value) ? <YamlView value={value} label={`YAML of ${object.metadata.name}`} /> : null;
}

function Delete({ system, object, onClose }: { system: System; object: K8sObject; onClose: () => void }) {
  const { name, namespace, uid } = object.metadata;
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const go = async () => {
    setBusy(true);
    try {
      await callObject('deleteObject', { ...system, namespace, name }, { query: { uid } });
      toast(`${name} is being deleted.`);
      navigate(system.home);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  return (
    <ConfirmByName title={`Delete ${name}?`} name={name} verb="Delete" busy={isBusy} problem={problem} onConfirm={() => void go()} onClose={onClose}>
      <p>The {system.layout.one} and everything that it made go away. This cannot be taken back.</p>
    </ConfirmByName>
  );
}
