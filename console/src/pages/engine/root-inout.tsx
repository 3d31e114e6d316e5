// What a root's logic is given and what it answers, made again from what is live; and each child as it is wanted and as it is.
import { useState } from 'preact/hooks';
import type { Inspected, InspectedChild, Kind } from '../../api/generated';
import { useRead } from '../../lib/read';
import { MODULES, useRows } from '../../lib/store';
import { Age } from '../../ui/age';
import { Button } from '../../ui/button';
import { Diff } from '../../ui/diff';
import { Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { Icon } from '../../ui/icon';
import { Segment, Select } from '../../ui/inputs';
import { Section } from '../../ui/layout';
import { YamlView } from '../../ui/yaml';
import { ChangeWord } from './changes';
import { candidates, MODULE_FIELDS } from './modules-of';
import { reconcilerPage } from './paths';
import { ModuleRef, ObjectName } from './shared';
import { failureWords, shortDigest } from './words';

/** One child: how it differs, or both forms as a whole. */
function InspectedOf({ child, whole }: { child: InspectedChild; whole: boolean }) {
  const isQuiet = child.change === 'unchanged' && child.diff === '';
  const [isOpen, setOpen] = useState(!isQuiet);
  const name = `${child.reference.kind} ${child.reference.name}`;
  return (
    <li>
      <button type="button" class="row" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? 'chevron' : 'chevron-right'} />
        <ChangeWord change={child.change} />
        <ObjectName reference={child.reference} />
      </button>
      {isOpen && (
        <div class="planned stack tight">
          {child.why && <p class="muted">{child.why}</p>}
          {whole || isQuiet ? (
            <div class="halves">
              <figure class="side"><figcaption>Wanted</figcaption>{child.wanted === null ? <p class="muted">Not wanted.</p> : <YamlView value={child.wanted} label={`${name} as wanted`} max="420px" />}</figure>
              <figure class="side"><figcaption>Live</figcaption>{child.live === null ? <p class="muted">{child.change === 'unknown' ? 'You may not read it.' : 'Not there.'}</p> : <YamlView value={child.live} label={`${name} as it is`} max="420px" />}</figure>
            </div>
          ) : <Diff text={child.diff} label={`Differences of ${name}`} />}
        </div>
      )}
    </li>
  );
}

function Found({ value, lastDigest }: { value: Inspected; lastDigest: string | undefined }) {
  const [look, setLook] = useState('diff');
  const { module, failure, unknown, ready, children } = value;
  return (
    <>
      {lastDigest && lastDigest !== module.digest && (
        <Notice tone="info" title="Last changed by another module">
          The status says that module <code>{shortDigest(lastDigest)}</code> last changed something here. What is below was computed with {module.name} <code>{shortDigest(module.digest)}</code>.
        </Notice>
      )}
      {failure && <Notice tone="bad" title={failure.reason}>{failureWords(failure)}</Notice>}
      {unknown.length > 0 && <Notice tone="warn" title="Not everything could be read"><ul>{unknown.map(({ what, why }) => <li key={what}>{what}: {why}</li>)}</ul></Notice>}
      {value.note && <Notice tone="info">{value.note}</Notice>}
      {value.secretsReplaced && <Notice tone="info">Of Secrets only the keys are shown. Their values are replaced.</Notice>}
      {ready?.status && <p>With this answer the root is <strong>{ready.status === 'True' ? 'ready' : 'not ready'}</strong>{ready.message && <>: {ready.message}</>}</p>}
      <div class="halves">
        <Section title="Request">{value.request === null ? <p class="muted">There is no request.</p> : <YamlView value={value.request} label="Request as YAML" max="520px" />}</Section>
        <Section title="Answer">{value.answer === null ? <p class="muted">There is no answer.</p> : <YamlView value={value.answer} label="Answer as YAML" max="520px" />}</Section>
      </div>
      {children.length > 0 && (
        <Section
          title="Wanted and live"
          beside={<span class="muted num">{children.length.toLocaleString('en')}</span>}
          actions={<Segment label="Compare" value={look} onChange={setLook} options={[{ value: 'diff', label: 'Differences' }, { value: 'whole', label: 'Whole' }]} />}
        >
          <ul class="plain foldable card flush" role="list" aria-label="Children">{children.map((child) => <InspectedOf key={`${child.reference.apiVersion} ${child.reference.kind} ${child.reference.namespace ?? ''}/${child.reference.name}`} child={child} whole={look === 'whole'} />)}</ul>
        </Section>
      )}
    </>
  );
}

interface InOutProps {
  kind: Kind;
  namespace: string | null;
  name: string;
  version: string;
  lastDigest: string | undefined;
}

export function InOut({ kind, namespace, name, version, lastDigest }: InOutProps) {
  const [module, setModule] = useState('');
  const modules = useRows(MODULES, { fields: MODULE_FIELDS }).rows.value;
  const { value, problem, at, busy, again } = useRead('inspect', { ...kind, namespace, name }, { query: { module }, version });
  const others = candidates(modules, { apiVersion: `${kind.group}/${kind.version}`, kind: kind.kind }, module);
  return (
    <div class="stack">
      <div class="toolbar">
        {others.length > 0 && <Select label="Module" value={module} onChange={setModule} options={[{ value: '', label: 'Module in force' }, ...others.map((one) => ({ value: one.name, label: one.name }))]} />}
        <Button icon="refresh" busy={busy} onClick={again}>Compute again</Button>
        {value && <span class="muted small">As of now: <Age time={value.asOf || at} ago />, with <ModuleRef name={value.module.name} digest={value.module.digest} /> {value.module.inForce ? 'in force' : 'not in force'} on <a class="inline" href={reconcilerPage(value.reconciler)}>{value.reconciler}</a></span>}
      </div>
      {problem && (
        <>
          <ProblemView problem={problem} retry={again} />
          {problem.status === 403 && <p class="muted">Whoever wants to see request and answer needs the ClusterRole <code>pintle-reader</code>, since the config of the Reconciler is part of the request; and to read the module, the Role <code>pintle-module-reader</code> in <code>pintle-system</code>. <code>pintle rbac MODULE --users</code> prints both.</p>}
        </>
      )}
      {value ? <Found value={value} lastDigest={lastDigest} /> : !problem && <Skeleton lines={10} label="Computing request and answer" />}
    </div>
  );
}
