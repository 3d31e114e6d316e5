// Before a swap: what another module, or another config, would change of every live root. Nothing is written until the swap itself.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Json, PlanRequest, Row } from '../../api/generated';
import { useAction } from '../../lib/keys';
import type { K8sObject, ReconcilerSpec, ReconcilerStatus } from '../../lib/kubernetes';
import { type PageProps, queryOf, setQuery } from '../../lib/router';
import { MODULES, RECONCILERS, useObject, useRows } from '../../lib/store';
import { Button, LinkButton } from '../../ui/button';
import { Notice, ProblemView, Progress, Skeleton } from '../../ui/feedback';
import { Field } from '../../ui/field';
import { Select, Switch, TextInput } from '../../ui/inputs';
import { Card, Page, PageHead } from '../../ui/layout';
import { statefulOf } from '../../ui/conditions';
import { isEqual } from '../../forms/path';
import { pluralOf } from '../../ui/text';
import { configOf, undoOf } from './config';
import { ConfigEditor, type EditedConfig, useConfigText } from './config-editor';
import { Config } from './config-view';
import { manifestIn } from './manifest';
import { ManifestChanges } from './manifest-view';
import { candidates, MODULE_FIELDS } from './modules-of';
import { reconcilerPage, RECONCILERS_PAGE } from './paths';
import { PlanResult } from './plan-result';
import { PlanRun } from './plan-run';
import { Missing, text } from './shared';
import { type Planned, SwapBar } from './swap';
import { count } from './words';

interface Scope {
  namespace: string;
  labelSelector: string;
  server: boolean;
}

function askedOf(inForce: string, module: string, edited: EditedConfig, scope: Scope): PlanRequest {
  return {
    ...(module === inForce && !edited.isEdited ? {} : { module }),
    ...(edited.isEdited ? { config: (edited.value ?? {}) as Json } : {}),
    ...(scope.namespace ? { namespace: scope.namespace } : {}),
    ...(scope.labelSelector ? { labelSelector: scope.labelSelector } : {}),
    ...(scope.server ? { server: true } : {}),
  };
}

function Planner({ object }: { object: K8sObject }) {
  const name = object.metadata.name;
  const spec = (object.spec ?? {}) as unknown as ReconcilerSpec;
  const status = (object.status ?? {}) as unknown as ReconcilerStatus;
  const inForce = status.active?.module ?? spec.module;
  const modules = useRows(MODULES, { fields: MODULE_FIELDS });
  const [undo, setUndo] = useState(() => (queryOf('undo') ? undoOf(spec, status) : undefined));
  const [module, setModule] = useState(() => undo?.module ?? (queryOf('module') || spec.module));
  const [scope, setScope] = useState<Scope>({ namespace: '', labelSelector: '', server: false });
  const config = useConfigText(spec.config);
  // The module before comes back with the config that it had.
  const edited: EditedConfig = undo ? { isEdited: !isEqual(configOf(undo.config), configOf(spec.config)), value: configOf(undo.config), problems: [] } : config.edited;
  const run = useMemo(() => new PlanRun(), []);
  const [planned, setPlanned] = useState<Planned | null>(null);
  useEffect(() => () => run.forget(), []);
  const state = run.state.value;
  const isRunning = state.phase === 'running';

  const choose = (chosen: string) => {
    setModule(chosen);
    setUndo(undefined);
    run.forget();
    setQuery({ module: chosen, undo: null });
  };
  const plan = () => {
    if (isRunning || edited.problems.length > 0) return;
    setPlanned({ module, config: edited, object });
    void run.start(name, askedOf(inForce, module, edited, scope));
  };
  useAction({ id: 'plan-run', title: `Plan ${module} on ${name}`, group: 'Plan', run: plan });

  const list = candidates(modules.rows.value, spec.for, module);
  const chosen = useObject(MODULES, null, module).object.value;
  const active = useObject(MODULES, null, inForce).object.value;
  const [after, before] = [manifestIn(chosen?.status?.manifest), manifestIn(active?.status?.manifest)];
  const isNotReady = chosen && statefulOf(chosen).ready.status !== 'True';
  const isSame = module === inForce && !edited.isEdited;

  return (
    <Page>
      <PageHead
        title={undo ? 'Undo a swap' : 'Plan a swap'}
        subtitle={<>What would change of {count(status.roots?.total ?? 0, spec.for.kind, pluralOf(spec.for.kind))}, were another module or config in force. Nothing is written.</>}
        breadcrumbs={[{ label: 'Engine', href: '/console/engine' }, { label: 'Reconcilers', href: RECONCILERS_PAGE }, { label: name, href: reconcilerPage(name) }]}
      />
      <Card>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            plan();
          }}
        >
          <div class="halves">
            <div class="stack">
              <Field label="Module" help={isSame ? 'This one is in force: the plan shows what its roots still differ in.' : undefined} error={isNotReady ? 'This Module is not ready.' : chosen === null ? 'There is no such Module.' : undefined}>
                <Select value={module} onChange={choose} options={optionsOf(list, module, inForce)} />
              </Field>
              <ManifestChanges before={before} after={after} grants={spec.grants} />
              <ScopeFields scope={scope} onChange={setScope} />
            </div>
            {undo ? (
              <Field label="Config" group help={`The one with which ${undo.module} was active.`}><Config value={undo.config} /></Field>
            ) : <ConfigEditor config={config} current={spec.config} manifest={after} problem={state.phase === 'failed' ? state.problem : null} onSubmit={plan} />}
          </div>
          <div class="toolbar">
            <Button type="submit" variant={state.phase === 'done' ? 'plain' : 'primary'} icon="eye" busy={isRunning} disabled={edited.problems.length > 0}>{state.phase === 'idle' ? 'Plan' : 'Plan again'}</Button>
            {isRunning && <Button icon="cross" onClick={() => run.cancel()}>Cancel</Button>}
            <LinkButton variant="quiet" href={reconcilerPage(name)}>Back</LinkButton>
          </div>
        </form>
      </Card>
      {isRunning && (
        <div class="stack tight" role="status">
          <span class="small muted num">{state.total > 0 ? `${state.done.toLocaleString('en')} of ${count(state.total, 'root')}` : 'Reading what is live…'}</span>
          <Progress done={state.done} total={state.total} label="Roots planned" />
        </div>
      )}
      {state.phase === 'cancelled' && <Notice tone="info">The plan was cancelled after {state.done.toLocaleString('en')} of {count(state.total, 'root')}.</Notice>}
      {state.phase === 'failed' && state.problem && <ProblemView problem={state.problem} retry={plan} />}
      {state.phase !== 'idle' && (state.phase !== 'failed' || state.roots.length > 0) && <PlanResult state={state} name={name} />}
      {state.phase === 'done' && planned && <SwapBar object={object} planned={planned} state={state} />}
    </Page>
  );
}

function optionsOf(list: readonly Row[], module: string, inForce: string) {
  const options = list.map(({ name, fields }) => {
    const version = text(fields['status.manifest.version']);
    return { value: name, label: `${name}${version && !name.includes(version) ? ` (${version})` : ''}${name === inForce ? ' — in force' : ''}` };
  });
  return options.some(({ value }) => value === module) ? options : [{ value: module, label: module }, ...options];
}

function ScopeFields({ scope, onChange }: { scope: Scope; onChange: (scope: Scope) => void }) {
  return (
    <details class="more">
      <summary>Only some roots, or a closer look</summary>
      <div class="stack">
        <Field label="Namespace" help="Only the roots in it."><TextInput value={scope.namespace} onInput={(namespace) => onChange({ ...scope, namespace: namespace.trim() })} /></Field>
        <Field label="Label selector" help="Such as team=shop."><TextInput value={scope.labelSelector} onInput={(labelSelector) => onChange({ ...scope, labelSelector: labelSelector.trim() })} mono /></Field>
        <Switch checked={scope.server} onChange={(server) => onChange({ ...scope, server })}>Prove it with dry runs at the API server (slower)</Switch>
      </div>
    </details>
  );
}

export function PlanPage({ params }: PageProps) {
  const name = params.name ?? '';
  const { object, problem } = useObject(RECONCILERS, null, name);
  if (object.value) return <Planner object={object.value} key={name} />;
  return (
    <Page>
      <PageHead title="Plan a swap" breadcrumbs={[{ label: 'Engine', href: '/console/engine' }, { label: 'Reconcilers', href: RECONCILERS_PAGE }, { label: name, href: reconcilerPage(name) }]} />
      {problem.value ? <ProblemView problem={problem.value} /> : object.value === null ? <Missing what="Reconciler" name={name} back={<LinkButton href={RECONCILERS_PAGE}>All Reconcilers</LinkButton>} /> : <Skeleton lines={8} />}
    </Page>
  );
}
