// Any root: how it is and what is in the way, the children it has, and what its logic is given and answers.
import { useMemo, useState } from 'preact/hooks';
import type { Kind } from '../../api/generated';
import { covered } from '../../forms/model';
import { isObject } from '../../forms/path';
import { useObjectEvents } from '../../lib/events';
import type { K8sObject } from '../../lib/kubernetes';
import { pageOf } from '../../lib/paths';
import { type PageProps, queryOf, setQuery } from '../../lib/router';
import { useObject } from '../../lib/store';
import { Age } from '../../ui/age';
import { LinkButton } from '../../ui/button';
import { Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { type Crumb, Page, PageHead, Section } from '../../ui/layout';
import { Blocker, Conditions } from '../../ui/condition-list';
import { statefulOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { Tabs } from '../../ui/tabs';
import { YamlView } from '../../ui/yaml';
import { useSchema } from '../systems/system';
import { EventsOf } from './events-list';
import { kindAt } from './modules-of';
import { ENGINE_PAGE, reconcilerPage } from './paths';
import { RootActions } from './root-actions';
import { InOut } from './root-inout';
import { ChildrenOf } from './root-tree';
import { Missing } from './shared';

/** The digest of the module whose answer last changed something. */
function lastDigest(object: K8sObject): string | undefined {
  const pintle = object.status?.pintle;
  return isObject(pintle) && typeof pintle.moduleDigest === 'string' ? pintle.moduleDigest : undefined;
}

const TABS = ['overview', 'inout', 'events', 'yaml'] as const;

function Root({ object, kind }: { object: K8sObject; kind: Kind }) {
  const { name, namespace = null, resourceVersion } = object.metadata;
  const events = useObjectEvents(kind, namespace, name);
  const [tab, setTab] = useState<string>(() => TABS.find((one) => one === queryOf('tab')) ?? 'overview');
  const hasWarnings = events.events?.some(({ type }) => type === 'Warning') ?? false;
  const choose = (chosen: string) => {
    setTab(chosen);
    setQuery({ tab: chosen === 'overview' ? null : chosen });
  };
  return (
    <Page>
      <PageHead
        title={name}
        beside={<Status pill row={statefulOf(object)} />}
        subtitle={<>{kind.kind}{namespace && <> in {namespace}</>}, <Age time={object.metadata.creationTimestamp} /> old</>}
        breadcrumbs={crumbsOf(kind)}
        actions={<><RootActions kind={kind} object={object} /><LinkButton icon="edit" href={pageOf(kind, namespace, name)}>Edit</LinkButton></>}
      />
      <Blocker object={object} />
      <Tabs
        label={`About ${name}`}
        value={tab}
        onChange={choose}
        tabs={[
          { key: 'overview', label: 'Overview' },
          { key: 'inout', label: 'In and out' },
          { key: 'events', label: 'Events', ...(events.events ? { badge: events.events.length, bad: hasWarnings } : {}) },
          { key: 'yaml', label: 'YAML' },
        ]}
      >
        {tab === 'overview' && (
          <div class="halves wide-first">
            <ChildrenOf kind={kind} object={object} title="Children" />
            <Section title="Conditions"><Conditions object={object} /></Section>
          </div>
        )}
        {tab === 'inout' && <InOut kind={kind} namespace={namespace} name={name} version={resourceVersion} lastDigest={lastDigest(object)} />}
        {tab === 'events' && <EventsOf {...events} />}
        {tab === 'yaml' && <Yaml object={object} kind={kind} />}
      </Tabs>
    </Page>
  );
}

/** The object as it is, without what nobody should read over a shoulder, which its schema tells. */
function Yaml({ object, kind }: { object: K8sObject; kind: Kind }) {
  const { value, problem, retry } = useSchema(kind);
  const shown = useMemo(() => value && covered(object, value.schema), [object, value]);
  if (problem && !value) return <ProblemView problem={problem} retry={retry} />;
  return shown ? <YamlView value={shown} /> : <Skeleton lines={8} />;
}

function crumbsOf({ kind, reconcilers }: Kind): Crumb[] {
  return [{ label: 'Engine', href: ENGINE_PAGE }, ...reconcilers.slice(0, 1).map((one) => ({ label: one, href: reconcilerPage(one) })), ...(reconcilers.length === 0 ? [{ label: kind, href: ENGINE_PAGE }] : [])];
}

export function RootPage({ params }: PageProps) {
  const { group = '', version = '', plural = '', name = '' } = params;
  const namespace = params.namespace === '-' ? null : (params.namespace ?? null);
  const { object, problem } = useObject({ group, version, plural }, namespace, name);
  const kind = kindAt({ group, version, plural }, object.value);
  if (object.value) return <Root object={object.value} kind={kind} key={object.value.metadata.uid} />;
  return (
    <Page>
      <PageHead title={name} subtitle={<>{kind.kind}{namespace && <> in {namespace}</>}</>} breadcrumbs={crumbsOf(kind)} />
      {problem.value ? <ProblemView problem={problem.value} /> : object.value === null ? <Missing what={kind.kind} name={name} back={kind.reconcilers[0] ? <LinkButton href={reconcilerPage(kind.reconcilers[0])}>All roots of {kind.reconcilers[0]}</LinkButton> : <LinkButton href={ENGINE_PAGE}>Engine</LinkButton>} /> : <Skeleton lines={8} />}
      {problem.value?.status === 403 && <Notice tone="info">You may not read this object.</Notice>}
    </Page>
  );
}
