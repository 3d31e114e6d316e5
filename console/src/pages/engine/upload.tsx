// The place to drop a module, and what the host says of it before there is a Module.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Row } from '../../api/generated';
import { useCan } from '../../lib/can';
import { useAction } from '../../lib/keys';
import type { Grants } from '../../lib/kubernetes';
import { MODULES, RECONCILERS, useObject, useRows } from '../../lib/store';
import { Button, LinkButton } from '../../ui/button';
import { CopyText } from '../../ui/copy';
import { Notice, ProblemView } from '../../ui/feedback';
import { Field } from '../../ui/field';
import { Icon } from '../../ui/icon';
import { TextInput } from '../../ui/inputs';
import { Card, KeyValue } from '../../ui/layout';
import { YamlView } from '../../ui/yaml';
import { type Manifest, manifestIn } from './manifest';
import { ManifestChanges } from './manifest-view';
import { planPage } from './paths';
import { Tags, text, Words } from './shared';
import { Upload, type UploadState } from './upload-run';
import { bytes, nameProblem, shortDigest, uploadHelp } from './words';

/** How far the upload is. */
const PHASES: Partial<Record<UploadState['phase'], string>> = {
  reading: 'The file is read.', checking: 'The host checks the file.', checked: 'The host accepts the file. Give it a name.', creating: 'The Module is created.',
};

/** What the new module declares otherwise than the one in force for the same kind. */
function Comparison({ manifest, reconciler }: { manifest: Manifest; reconciler: Row }) {
  const active = useObject(MODULES, null, text(reconciler.fields['status.active.module']) ?? '').object.value;
  const grants = reconciler.fields['spec.grants'];
  return (
    <div class="stack tight">
      <h2 class="sub">Against {text(reconciler.fields['status.active.module'])}, in force on {reconciler.name}</h2>
      {active !== undefined && <ManifestChanges before={manifestIn(active?.status?.manifest)} after={manifest} grants={(grants ?? undefined) as Grants | undefined} always />}
    </div>
  );
}

interface CheckedProps {
  upload: Upload;
  state: UploadState;
  modules: readonly Row[];
  users: readonly Row[];
}

function Checked({ upload, state, modules, users }: CheckedProps) {
  const { verified, manifest, proposed, phase, problem } = state;
  const [name, setName] = useState(proposed);
  if (!verified) return null;
  const twin = modules.find(({ fields }) => fields['spec.digest'] === verified.digest);
  const taken = modules.find((one) => one.name === name);
  const isTwin = taken !== undefined && taken === twin;
  const wrong = nameProblem(name) ?? (taken && !isTwin ? 'A Module of this name has other bytes, and a Module never changes.' : null);
  if (phase === 'created') {
    return (
      <Notice tone="ok" live title={`Module ${verified.name} ${verified.unchanged ? 'was there already, with the same bytes' : 'is created'}.`} actions={<Button small onClick={() => upload.forget()}>Done</Button>}>
        {users.length > 0 ? <span class="toolbar">{users.map((user) => <LinkButton key={user.name} small variant="primary" icon="swap" href={planPage(user.name, verified.name)}>Plan a swap of {user.name}</LinkButton>)}</span> : manifest ? `No Reconciler is for ${manifest.reconciles.kind} yet.` : 'It serves views alone.'}
        {verified.warnings.map((one) => <p key={one}>{one}</p>)}
      </Notice>
    );
  }
  return (
    <>
      <div class="halves">
        <div class="stack tight">
          {manifest ? <YamlView value={manifest} label="Manifest" max="360px" /> : <p class="muted">It reconciles nothing; it serves views alone.</p>}
          <KeyValue items={[['Size', bytes(verified.sizeBytes)], ['Digest', <CopyText text={verified.digest} shown={shortDigest(verified.digest)} what="digest" />], ['Contract', <Tags items={verified.contract} />], ['Compiled in', <span class="num">{verified.compileMilliseconds.toLocaleString('en')} ms</span>]]} />
        </div>
        <div class="stack">
          {manifest && users.filter(({ fields }) => text(fields['status.active.module'])).map((user) => <Comparison key={user.name} manifest={manifest} reconciler={user} />)}
          {verified.warnings.length > 0 && <Notice tone="warn"><ul>{verified.warnings.map((one) => <li key={one}>{one}</li>)}</ul></Notice>}
        </div>
      </div>
      <form
        class="name-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!wrong) void upload.create(name);
        }}
      >
        <Field label="Name of the Module" error={wrong ?? undefined} help={isTwin ? 'It is there already, with the same bytes.' : undefined} required><TextInput value={name} onInput={setName} mono /></Field>
        <Button type="submit" variant="primary" icon="upload" busy={phase === 'creating'} disabled={wrong !== null}>Create</Button>
        <Button onClick={() => upload.forget()}>Cancel</Button>
      </form>
      {problem && <Refusal problem={problem} />}
    </>
  );
}

function Refusal({ problem, retry }: { problem: NonNullable<UploadState['problem']>; retry?: () => void }) {
  const help = uploadHelp(problem);
  return (
    <div class="stack tight">
      <ProblemView problem={problem.reason ? { ...problem, title: problem.reason } : problem} retry={retry} />
      {help && <p class="muted"><Words text={help} /></p>}
    </div>
  );
}

const USER_FIELDS = ['spec.for.kind', 'spec.for.apiVersion', 'status.active.module', 'spec.grants'];

/** Drop a file here, anywhere on the page, or choose one. */
export function UploadZone({ modules }: { modules: readonly Row[] }) {
  const upload = useMemo(() => new Upload(), []);
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const can = useCan({ verb: 'create', group: MODULES.group, resource: MODULES.plural }).value;
  const reconcilers = useRows(RECONCILERS, { fields: USER_FIELDS }).rows.value;
  const state = upload.state.value;
  const { manifest } = state;
  const users = manifest ? reconcilers.filter(({ fields }) => fields['spec.for.kind'] === manifest.reconciles.kind && fields['spec.for.apiVersion'] === manifest.reconciles.apiVersion) : [];
  const isBusy = state.phase === 'creating';
  useAction({ id: 'module-upload', title: 'Upload a module', key: 'u', group: 'Modules', run: () => input.current?.click(), when: can !== false && !isBusy });

  useEffect(() => {
    if (can === false) return;
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      const file = event.dataTransfer?.files[0];
      if (file && upload.state.peek().phase !== 'creating') void upload.take(file);
    };
    const stop = new AbortController();
    document.addEventListener('dragover', over, { signal: stop.signal });
    document.addEventListener('dragleave', leave, { signal: stop.signal });
    document.addEventListener('drop', drop, { signal: stop.signal });
    return () => stop.abort();
  }, [can, upload]);
  useEffect(() => () => upload.forget(), [upload]);

  if (can === false) return <Notice tone="info">You may not create Modules in this cluster.</Notice>;
  const isIdle = state.phase === 'idle';
  return (
    <div class={`drop${isOver ? ' over' : ''}${isIdle ? ' idle' : ''}`}>
      <input
        ref={input}
        type="file"
        accept=".wasm,application/wasm"
        class="sr-only"
        tabIndex={-1}
        aria-label="Module file"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = '';
          if (file) void upload.take(file);
        }}
      />
      {isIdle ? (
        <>
          <Icon name="upload" />
          <span class="muted">Drop a <code>.wasm</code> file anywhere on this page. The host checks it before anything is created.</span>
          <Button icon="folder" onClick={() => input.current?.click()}>Choose a file</Button>
        </>
      ) : (
        <Card>
          <div class="stack" aria-busy={state.phase === 'reading' || state.phase === 'checking'}>
            <div class="split">
              <span><strong>{state.file?.name}</strong> <span class="muted num">{bytes(state.file?.size ?? 0)}</span></span>
              <span class="muted" role="status">{PHASES[state.phase]}</span>
            </div>
            {state.phase === 'refused' && state.problem && (
              <>
                <Refusal problem={state.problem} />
                <div class="toolbar"><Button icon="folder" onClick={() => input.current?.click()}>Choose another file</Button><Button variant="quiet" onClick={() => upload.forget()}>Close</Button></div>
              </>
            )}
            {state.verified && <Checked key={state.verified.digest} upload={upload} state={state} modules={modules} users={users} />}
          </div>
        </Card>
      )}
    </div>
  );
}
