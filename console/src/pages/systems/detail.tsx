// One object of a system: how it is, what it made, what happened, and what can be done.
import { useMemo, useState } from 'preact/hooks';
import { covered, shown } from '../../forms/model';
import { useCan } from '../../lib/can';
import { useObjectEvents } from '../../lib/events';
import { useAction } from '../../lib/keys';
import type { K8sObject } from '../../lib/kubernetes';
import { pageOf, rootPage } from '../../lib/paths';
import { navigate, queryOf, setQuery, useTitle } from '../../lib/router';
import { useObject } from '../../lib/store';
import { Age } from '../../ui/age';
import { LinkButton } from '../../ui/button';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import { Card, KeyValue, Page, PageHead, Section } from '../../ui/layout';
import { Blocker, Conditions } from '../../ui/condition-list';
import { statefulOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { beginning } from '../../ui/text';
import { Tabs } from '../../ui/tabs';
import { YamlView } from '../../ui/yaml';
import { DeleteDialog } from '../engine/delete-dialog';
import { EventsOf } from '../engine/events-list';
import { ChildrenOf } from '../engine/root-tree';
import { atColumn, factColumns, printed } from './columns';
import { AllowedButton, AllowedLink } from './parts';
import type { Schema, System } from './system';

interface DetailProps {
  system: System;
  schema: Schema;
  namespace: string | null;
  name: string;
}

export function SystemDetail({ system, schema, namespace, name }: DetailProps) {
  const { kind, many, group, plural } = system;
  useTitle(name);
  const { object, problem } = useObject(system, namespace, name);
  const check = { group, resource: plural, name, ...(namespace ? { namespace } : {}) };
  const canUpdate = useCan({ ...check, verb: 'patch' });
  const canDelete = useCan({ ...check, verb: 'delete' });
  const [isDeleting, setDeleting] = useState(false);
  const edit = `${pageOf(system, namespace, name)}/edit`;
  useAction({ id: 'edit-here', title: `Edit ${name}`, key: 'e', group: 'This page', when: canUpdate.value === true, run: () => navigate(edit) });
  const crumbs = [{ label: many, href: system.home }];

  const found = object.value;
  if (found === undefined || found === null) {
    return (
      <Page>
        <PageHead title={name} breadcrumbs={crumbs} />
        {problem.value && problem.value.status !== 404 ? <ProblemView problem={problem.value} />
          : found === null || problem.value ? <Empty title={`There is no ${kind} ${name}`} actions={<LinkButton href={system.home}>All {many}</LinkButton>}>{namespace ? `Not in ${namespace}, or no longer.` : 'Or no longer.'}</Empty>
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
            <AllowedLink can={canUpdate} what={`change this ${kind}`} href={edit} icon="edit">Edit</AllowedLink>
            <AllowedButton can={canDelete} what={`delete this ${kind}`} icon="trash" onClick={() => setDeleting(true)}>Delete</AllowedButton>
          </>
        }
      />
      <Blocker object={found} />
      <Tabs label="About it" value={tab} onChange={(key) => setQuery({ tab: key === 'overview' ? null : key })} tabs={[{ key: 'overview', label: 'Overview' }, { key: 'events', label: 'Events' }, { key: 'yaml', label: 'YAML' }]}>
        {tab === 'yaml' ? <Yaml object={found} schema={schema} />
          : tab === 'events' ? <Events system={system} namespace={namespace} name={name} />
          : <Overview object={found} system={system} schema={schema} />}
      </Tabs>
      {isDeleting && (
        <DeleteDialog kind={system} object={found} title={`Delete ${name}?`} said={`${name} is being deleted.`} onDone={() => navigate(system.home)} onClose={() => setDeleting(false)}>
          <p>The {kind} and everything that it made go away. This cannot be taken back.</p>
        </DeleteDialog>
      )}
    </Page>
  );
}

function Overview({ object, system, schema }: { object: K8sObject } & Pick<DetailProps, 'system' | 'schema'>) {
  return (
    <div class="columns">
      <div class="stack loose">
        <ChildrenOf kind={system} object={object} title="What it made" />
        <Section title="Conditions"><Conditions object={object} /></Section>
      </div>
      <Card>
        <Section title="Details"><Facts object={object} schema={schema} /></Section>
      </Card>
    </div>
  );
}

function Facts({ object, schema }: { object: K8sObject; schema: Schema }) {
  const { namespace, creationTimestamp } = object.metadata;
  const own = factColumns(schema).map(({ name, type, path }) => {
    const value = atColumn(object, path);
    if (value === undefined || value === null) return undefined;
    return [name, type === 'date' ? <Age time={shown(value)} ago /> : <span class="wrap">{beginning(printed(value), 400)}</span>] as const;
  });
  return <KeyValue items={[...(namespace ? [['Namespace', namespace] as const] : []), ...own, ['Created', <Age time={creationTimestamp} ago />]]} />;
}

function Events({ system, namespace, name }: { system: System; namespace: string | null; name: string }) {
  return <EventsOf {...useObjectEvents(system, namespace, name)} />;
}

/** The object as it is, without what nobody should read over a shoulder. */
function Yaml({ object, schema }: { object: K8sObject; schema: Schema }) {
  const value = useMemo(() => covered(object, schema.schema), [object, schema]);
  return <YamlView value={value} label={`YAML of ${object.metadata.name}`} />;
}
