// Making an object, and changing one.
import { useMemo, useRef, useState } from 'preact/hooks';
import type { Failure, Json } from '../../api/generated';
import { callObject, patchSeen } from '../../api/objects';
import { type Fault, faultsOf } from '../../forms/faults';
import { ObjectForm } from '../../forms/form';
import type { Thing } from '../../forms/model';
import { get, isEqual, isObject, mergePatch } from '../../forms/path';
import { ProblemError, problemOf } from '../../lib/api';
import type { K8sObject } from '../../lib/kubernetes';
import { namespaceOfNew, namespaceShown, rememberNamespace } from '../../lib/namespace';
import { pageOf } from '../../lib/paths';
import { navigate, useGuard, useTitle } from '../../lib/router';
import { object as liveObject, useObject } from '../../lib/store';
import { Button, LinkButton } from '../../ui/button';
import { statefulOf } from '../../ui/conditions';
import { Empty, Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { Page, PageHead } from '../../ui/layout';
import { toast } from '../../ui/toast';
import { type Schema, type System, useNamespaces } from './system';

/** What a form holds is JSON, although it does not say so. */
type JsonObject = Record<string, Json>;

/** Throws what its logic would say of a field, if it were stored so: the API server knows the schema alone. Where the logic cannot be asked,
 * or the object says the same already, it is as with kubectl: it is stored, and its conditions tell. */
async function judge(system: System, object: K8sObject, signal?: AbortSignal): Promise<void> {
  const { name, namespace } = object.metadata;
  let failure: Failure | null = null;
  try {
    ({ failure } = await callObject('judge', { ...system, namespace, name }, { body: object as unknown as JsonObject, signal }));
  } catch (error) {
    if (error instanceof ProblemError) return;
    throw error;
  }
  if (!failure?.path) return;
  const { path: field, reason, message } = failure;
  if (statefulOf(object).ready.reason === reason) return;
  throw new ProblemError({ ...problemOf(422, 'Its logic refuses this', message), causes: [{ field, reason, message }] });
}

/** What the server finds wrong with a body; nothing where it cannot tell, because saving will say it. */
async function refused(system: System, isNew: boolean, send: () => Promise<K8sObject | undefined>, signal: AbortSignal): Promise<Fault[]> {
  try {
    const stored = await send();
    if (stored) await judge(system, stored, signal);
    return [];
  } catch (error) {
    return error instanceof ProblemError ? faultsOf(error.problem, isNew) : [];
  }
}

const DRY_RUN = { dryRun: 'All' } as const;

/** What a new object begins as. Not every kind has a spec, and a field that a kind does not have is refused. */
export function blank({ group, version, kind, namespaced, schema }: Schema, namespace: string): Thing {
  return { apiVersion: `${group}/${version}`, kind, metadata: namespaced ? { namespace } : {}, ...(schema.properties?.spec?.type === 'object' ? { spec: {} } : {}) };
}

export function SystemNew({ system, schema }: { system: System; schema: Schema }) {
  const { kind, many, namespaced } = system;
  const title = `New ${kind}`;
  useTitle(title);
  const namespaces = useNamespaces();
  const [isDirty, setDirty] = useState(false);
  useGuard(isDirty);
  const initial = useMemo(() => blank(schema, namespaceOfNew()), [schema]);
  const namespaceOf = (thing: Thing) => (namespaced ? String(get(thing, ['metadata', 'namespace']) ?? '') : null);
  const save = async (thing: Thing) => {
    const namespace = namespaceOf(thing);
    const place = { ...system, namespace };
    const body = thing as JsonObject;
    await judge(system, await callObject('createObject', place, { body, query: DRY_RUN }));
    const { metadata: { name } } = await callObject('createObject', place, { body });
    // Who sees all namespaces goes on seeing them.
    if (namespace && namespaceShown() !== '') rememberNamespace(namespace);
    toast(`${name} is made.`);
    navigate(pageOf(system, namespace, name), { saved: true });
  };
  return (
    <Page>
      <PageHead title={title} breadcrumbs={[{ label: many, href: system.home }]} />
      <ObjectForm
        schema={schema.schema} kind={kind} initial={initial} isNew namespaced={namespaced} namespaces={namespaces ?? null} cancel={system.home} onDirty={setDirty} save={save}
        dryRun={(thing, signal) => refused(system, true, () => callObject('createObject', { ...system, namespace: namespaceOf(thing) }, { body: thing as JsonObject, query: DRY_RUN, signal }), signal)}
      />
    </Page>
  );
}

/** What of an object people write: the rest is the cluster's. */
export function written({ apiVersion, kind, metadata, status, ...rest }: K8sObject): Thing {
  const { name, namespace, labels, annotations } = metadata;
  return { apiVersion, kind, metadata: { name, ...(namespace ? { namespace } : {}), ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) }, ...rest };
}

/** Writes what was changed, where nobody else has changed what people write. */
async function change(system: System, before: K8sObject, thing: Thing): Promise<void> {
  const patch = mergePatch(written(before), thing);
  if (isObject(patch)) await patchSeen(system, before, patch, (now) => isEqual(written(now), written(before)));
}

/** What would be stored; undefined where nothing was changed. */
async function tried(system: System, before: K8sObject, thing: Thing, signal?: AbortSignal): Promise<K8sObject | undefined> {
  const patch = mergePatch(written(before), thing);
  if (patch === undefined) return undefined;
  const { name, namespace } = before.metadata;
  return callObject('patchObject', { ...system, namespace, name }, { body: patch as JsonObject, query: DRY_RUN, signal });
}

export function SystemEdit({ system, schema, namespace, name }: { system: System; schema: Schema; namespace: string | null; name: string }) {
  const { kind, many, namespaced } = system;
  const page = pageOf(system, namespace, name);
  useTitle(`Edit ${name}`);
  const { object, problem } = useObject(system, namespace, name);
  const live = object.value;
  const [before, setBefore] = useState<K8sObject | undefined>(() => liveObject(system, namespace, name).object.peek() ?? undefined);
  const [isDirty, setDirty] = useState(false);
  const isSaved = useRef(false);
  useGuard(isDirty);
  if (live && !before) setBefore(live);
  const initial = useMemo(() => before && written(before), [before]);
  const isOther = live !== undefined && live !== null && before !== undefined && !isSaved.current && !isEqual(written(live), written(before));
  const crumbs = [{ label: many, href: system.home }, { label: name, href: page }];
  // What was typed stays to be read and copied, though there is nothing left to save it to.
  const hasTyped = useRef(false);
  hasTyped.current ||= isDirty;
  const isLost = live === null && before !== undefined && hasTyped.current;

  if ((live === null && !isLost) || (problem.value && !before)) {
    return (
      <Page>
        <PageHead title={`Edit ${name}`} breadcrumbs={crumbs} />
        {problem.value && problem.value.status !== 404 ? <ProblemView problem={problem.value} /> : <Empty title={`There is no ${kind} ${name}`} actions={<LinkButton href={system.home}>All {many}</LinkButton>} />}
      </Page>
    );
  }
  return (
    <Page>
      <PageHead title={`Edit ${name}`} breadcrumbs={crumbs} />
      {isOther && (
        <Notice tone="warn" title="Somebody has changed it meanwhile" live actions={<Button small onClick={() => setBefore(live)}>Take theirs</Button>}>
          What you typed cannot be saved over it. Taking theirs begins anew from what is there now.
        </Notice>
      )}
      {isLost && <Notice tone="warn" title="Somebody has deleted it meanwhile" live>What you typed cannot be saved any more.</Notice>}
      {!before || !initial ? <Skeleton lines={8} /> : (
        <ObjectForm
          key={before.metadata.resourceVersion}
          schema={schema.schema} kind={kind} initial={initial} isNew={false} namespaced={namespaced} namespaces={null} cancel={page} onDirty={setDirty}
          save={async (thing) => {
            isSaved.current = true;
            try {
              const stored = await tried(system, before, thing);
              if (stored) await judge(system, stored);
              await change(system, before, thing);
            } catch (error) {
              isSaved.current = false;
              throw error;
            }
            toast(`${name} is saved.`);
            navigate(page, { saved: true });
          }}
          dryRun={(thing, signal) => refused(system, false, async () => tried(system, before, thing, signal), signal)}
        />
      )}
    </Page>
  );
}
