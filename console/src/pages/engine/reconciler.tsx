// One Reconciler: what is in force and what waits, what its logic may do, and its roots.
import { useState } from 'preact/hooks';
import { callObject } from '../../api/objects';
import { useAct } from '../../lib/act';
import { useCan } from '../../lib/can';
import { useAction } from '../../lib/keys';
import type { K8sObject, ReconcilerSpec, ReconcilerStatus } from '../../lib/kubernetes';
import { navigate, type PageProps } from '../../lib/router';
import { RECONCILERS, useObject } from '../../lib/store';
import { Age } from '../../ui/age';
import { Button, LinkButton } from '../../ui/button';
import { Dialog } from '../../ui/dialog';
import { Notice, ProblemView, Progress, Skeleton } from '../../ui/feedback';
import { Card, KeyValue, Page, PageHead, Section } from '../../ui/layout';
import { Blocker, Conditions } from '../../ui/condition-list';
import { statefulOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { Tabs } from '../../ui/tabs';
import { beginning } from '../../ui/text';
import { toast, toastProblem } from '../../ui/toast';
import { YamlView } from '../../ui/yaml';
import { Config } from './config-view';
import { undoOf } from './config';
import { planPage, RECONCILERS_PAGE, undoPage } from './paths';
import { Roots } from './roots-table';
import { Missing, ModuleRef, Tags } from './shared';
import { count, grantLines } from './words';

/** What is in force, and how far the roots have got with it. */
function InForce({ spec, status }: { spec: ReconcilerSpec; status: ReconcilerStatus }) {
  const { active, candidate, roots } = status;
  const reconciled = active?.roots?.reconciled;
  const total = roots?.total ?? 0;
  const isMoving = reconciled !== undefined && reconciled < total && !spec.suspend;
  return (
    <Card class="stack">
      <KeyValue
        items={[
          ['In force', <ModuleRef name={active?.module} digest={active?.digest} />],
          active?.since ? ['Since', <Age time={active.since} ago />] : undefined,
          roots ? ['Roots', <span class="num">{total.toLocaleString('en')}{roots.failing ? <>, <span class="tone-bad">{roots.failing.toLocaleString('en')} failing</span></> : ''}</span>] : undefined,
          ['Config', <Config value={active?.config} />],
        ]}
      />
      {isMoving && (
        <div class="stack tight" role="status">
          <span class="small muted">{reconciled.toLocaleString('en')} of {count(total, 'root')} reconciled with it</span>
          <Progress done={reconciled} total={total} label="Roots reconciled with what is in force" />
        </div>
      )}
      {candidate && (
        <Notice tone="warn" title={`${candidate.module} is not in force yet${candidate.reason ? `: ${candidate.reason}` : ''}`}>
          {candidate.message && <p class="words">{beginning(candidate.message)}</p>}
          <span class="muted">{active ? `${active.module} keeps working meanwhile.` : 'Nothing is reconciled meanwhile.'}</span>
        </Notice>
      )}
    </Card>
  );
}

const LIMITS = [
  ['timeoutMilliseconds', 'Time a call', 'ms'],
  ['memoryMebibytes', 'Memory', 'MiB'],
  ['responseKibibytes', 'Answer', 'KiB'],
  ['children', 'Children a root', ''],
] as const;

/** What the logic may do, and how much of everything. */
function Allowed({ spec }: { spec: ReconcilerSpec }) {
  const lines = grantLines(spec.grants);
  const account = spec.serviceAccount;
  return (
    <div class="halves">
      <Section title="Grants">
        <Card>
          {lines.length === 0 ? <p class="muted">Nothing is granted.</p> : (
            <KeyValue items={lines.map(({ what, kinds, where }) => [what, <span class="toolbar"><Tags items={kinds} />{where && <span class="muted">{where}</span>}</span>])} />
          )}
        </Card>
      </Section>
      <Section title="Limits and identity">
        <Card>
          <KeyValue
            items={[
              ...LIMITS.map(([key, name, unit]) => (spec.limits?.[key] === undefined ? undefined : ([name, <span class="num">{spec.limits[key]?.toLocaleString('en')} {unit}</span>] as const))),
              ['Namespaces', Array.isArray(spec.namespaces) ? <Tags items={spec.namespaces} /> : 'all'],
              spec.fieldManager ? ['Field manager', <code>{spec.fieldManager}</code>] : undefined,
              ['Writes as', account ? <span>{account.fromRoot ? <>the account in <code>{account.fromRoot}</code> of the root</> : <code>{account.namespace}/{account.name}</code>}</span> : 'the host itself'],
              ['Rollout', spec.rollout?.strategy ?? 'Immediate'],
            ]}
          />
        </Card>
      </Section>
    </div>
  );
}

/** Asks before the work stops; nothing is deleted. */
function SuspendDialog({ name, total, onClose }: { name: string; total: number; onClose: () => void }) {
  const { run, busy, problem } = useAct(async () => {
    await setSuspended(name, true);
    onClose();
  });
  return (
    <Dialog title={`Suspend ${name}?`} onClose={onClose} onSubmit={run} actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" variant="primary" busy={busy}>Suspend</Button></>}>
      <p>No root of it is reconciled until it is resumed: children and statuses of {count(total, 'root')} stay as they are. Nothing is deleted.</p>
      {problem && <ProblemView problem={problem} />}
    </Dialog>
  );
}

async function setSuspended(name: string, suspend: boolean): Promise<void> {
  await callObject('patchObject', { ...RECONCILERS, name }, { body: { spec: { suspend } } });
  toast(suspend ? `${name} is suspended.` : `${name} is resumed.`);
}

function Actions({ name, spec, status }: { name: string; spec: ReconcilerSpec; status: ReconcilerStatus }) {
  const can = useCan({ verb: 'patch', group: RECONCILERS.group, resource: RECONCILERS.plural, name });
  const [asks, setAsks] = useState(false);
  const { run: resume, busy } = useAct(() => setSuspended(name, false).catch(toastProblem));
  const isSuspended = spec.suspend === true;
  const before = undoOf(spec, status);
  useAction({ id: 'reconciler-plan', title: `Plan a swap of ${name}`, key: 'p', group: 'Reconciler', run: () => navigate(planPage(name)) });
  useAction({ id: 'reconciler-suspend', title: isSuspended ? `Resume ${name}` : `Suspend ${name}`, group: 'Reconciler', run: () => (isSuspended ? resume() : setAsks(true)), when: can.value === true });
  useAction({ id: 'reconciler-undo', title: `Undo the last swap of ${name}`, group: 'Reconciler', run: () => navigate(undoPage(name)), when: before !== undefined });
  const why = can.value === false ? 'You may not change this Reconciler.' : undefined;
  return (
    <>
      {isSuspended ? <Button icon="play" busy={busy} disabled={can.value !== true} title={why} onClick={resume}>Resume</Button> : <Button icon="pause" disabled={can.value !== true} title={why} onClick={() => setAsks(true)}>Suspend</Button>}
      {before && <LinkButton icon="refresh" href={undoPage(name)}>Undo</LinkButton>}
      <LinkButton variant="primary" icon="swap" href={planPage(name)}>Plan a swap</LinkButton>
      {asks && <SuspendDialog name={name} total={status.roots?.total ?? 0} onClose={() => setAsks(false)} />}
    </>
  );
}

const TABS = [
  { key: 'roots', label: 'Roots' },
  { key: 'conditions', label: 'Conditions' },
  { key: 'allowed', label: 'Grants and limits' },
  { key: 'yaml', label: 'YAML' },
] as const;

function Reconciler({ object }: { object: K8sObject }) {
  const name = object.metadata.name;
  const spec = (object.spec ?? {}) as unknown as ReconcilerSpec;
  const status = (object.status ?? {}) as unknown as ReconcilerStatus;
  const [tab, setTab] = useState('roots');
  return (
    <Page>
      <PageHead
        title={name}
        beside={<Status pill row={{ ...statefulOf(object), failing: status.roots?.failing }} />}
        subtitle={<>Reconciles every {spec.for.kind} <span class="nowrap">({spec.for.apiVersion})</span></>}
        breadcrumbs={[{ label: 'Engine', href: '/console/engine' }, { label: 'Reconcilers', href: RECONCILERS_PAGE }]}
        actions={<Actions name={name} spec={spec} status={status} />}
      />
      {spec.suspend ? <Notice tone="info" title="Suspended">No root is reconciled. Children and statuses stay as they are until it is resumed.</Notice> : !status.candidate && <Blocker object={object} />}
      <InForce spec={spec} status={status} />
      <Tabs label={`About ${name}`} tabs={TABS.map((one) => (one.key === 'roots' && status.roots?.failing ? { ...one, badge: status.roots.failing, bad: true } : one))} value={tab} onChange={setTab}>
        {tab === 'roots' && <Roots reference={spec.for} />}
        {tab === 'conditions' && <Conditions object={object} />}
        {tab === 'allowed' && <Allowed spec={spec} />}
        {tab === 'yaml' && <YamlView value={object} />}
      </Tabs>
    </Page>
  );
}

export function ReconcilerPage({ params }: PageProps) {
  const name = params.name ?? '';
  const { object, problem } = useObject(RECONCILERS, null, name);
  if (object.value) return <Reconciler object={object.value} key={name} />;
  return (
    <Page>
      <PageHead title={name} breadcrumbs={[{ label: 'Engine', href: '/console/engine' }, { label: 'Reconcilers', href: RECONCILERS_PAGE }]} />
      {problem.value ? <ProblemView problem={problem.value} /> : object.value === null ? <Missing what="Reconciler" name={name} back={<LinkButton href={RECONCILERS_PAGE}>All Reconcilers</LinkButton>} /> : <Skeleton lines={8} />}
    </Page>
  );
}
