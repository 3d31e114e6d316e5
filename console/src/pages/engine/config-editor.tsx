// The config that a plan is made with: that in force, or an edited one, as YAML.
import { useMemo, useState } from 'preact/hooks';
import type { Json } from '../../api/generated';
import type { LineProblem } from '../../editor/yaml';
import { isEqual, isObject, type Path } from '../../forms/path';
import type { Problem } from '../../lib/api';
import { Button } from '../../ui/button';
import { Field } from '../../ui/field';
import { Segment, Switch } from '../../ui/inputs';
import { useYamlLibrary, YamlEditor, YamlView } from '../../ui/yaml';
import { configOf, formSchema, pathInConfig } from './config';
import { ConfigForm } from './config-form';
import { configProperties, type Manifest } from './manifest';

export interface EditedConfig {
  /** Whether it is another than that of the Reconciler. */
  isEdited: boolean;
  value: Json | undefined;
  problems: readonly LineProblem[];
}

export type ConfigText = ReturnType<typeof useConfigText>;

const UNTOUCHED: EditedConfig = { isEdited: false, value: undefined, problems: [] };

/** A config while it is edited. The library that reads YAML is loaded when somebody begins to. */
export function useConfigText(config: Json | undefined) {
  const [isWanted, want] = useState(false);
  const yaml = useYamlLibrary(isWanted);
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? yaml?.print(configOf(config)) ?? '';
  const isOpen = isWanted && yaml !== undefined;
  const read = useMemo(() => (isOpen ? yaml.read(text) : undefined), [isOpen, yaml, text]);
  const edited = useMemo<EditedConfig>(() => {
    if (!read) return UNTOUCHED;
    const value = (read.value ?? undefined) as Json | undefined;
    const isNoObject = read.problems.length === 0 && value !== undefined && !isObject(value);
    const problems = isNoObject ? [{ line: 1, message: 'A config is an object: names and values.' }] : read.problems;
    return { isEdited: problems.length > 0 || !isEqual(configOf(value), configOf(config)), value: configOf(value), problems };
  }, [read, config]);
  return {
    isOpen,
    text,
    edited,
    lineOf: (path: Path) => read?.lineOf(path) ?? 1,
    open: () => {
      want(true);
      setTyped(null);
    },
    close: () => want(false),
    write: setTyped,
    /** Takes a value that was put together in the form. */
    change: (value: Json) => setTyped(yaml?.print(value) ?? ''),
  };
}

/** What the server said of the config, by path. */
function faultsOf(problem: Problem | null) {
  return (problem?.causes ?? []).flatMap(({ field, message }) => {
    const path = pathInConfig(field);
    return path ? [{ path, message }] : [];
  });
}

/** What a config may hold, as the module declares it. */
function Known({ manifest }: { manifest: Manifest }) {
  const properties = [...configProperties(manifest.configSchema)];
  if (manifest.configSchema === undefined) return <p class="muted small">The module takes no config.</p>;
  if (properties.length === 0) return null;
  return (
    <details class="more">
      <summary>What {manifest.name} {manifest.version} takes</summary>
      <dl class="fields">
        {properties.map(([name, { type, description, isRequired }]) => [
          <dt key={name}><code>{name}</code> <span class="muted">{type}{isRequired && ', required'}</span></dt>,
          <dd key={`${name}=`}>{description}</dd>,
        ])}
      </dl>
    </details>
  );
}

interface ConfigEditorProps {
  config: ConfigText;
  current: Json | undefined;
  manifest: Manifest | null;
  problem: Problem | null;
  onSubmit: () => void;
}

export function ConfigEditor({ config, current, manifest, problem, onSubmit }: ConfigEditorProps) {
  const [how, setHow] = useState('form');
  const { isOpen, edited } = config;
  const none = configOf(current) === undefined;
  const schema = useMemo(() => formSchema(manifest?.configSchema), [manifest]);
  const hasForm = schema !== null && Object.keys(schema.properties ?? {}).length > 0;
  const faults = useMemo(() => faultsOf(problem), [problem]);
  const isForm = hasForm && how === 'form' && edited.problems.length === 0;
  return (
    <div class="stack">
      <Field label="Config" group>
        <Switch checked={isOpen} onChange={(on) => (on ? config.open() : config.close())}>Try another config</Switch>
        {!isOpen && (none ? <p class="muted">The Reconciler has no config.</p> : <YamlView value={current} label="Config of the Reconciler" max="220px" />)}
      </Field>
      {isOpen && (
        <>
          <div class="toolbar">
            {hasForm && <Segment label="Edit as" value={isForm ? 'form' : 'yaml'} onChange={setHow} options={[{ value: 'form', label: 'Form' }, { value: 'yaml', label: 'YAML' }]} />}
            <Button small icon="refresh" onClick={config.open}>Start over</Button>
          </div>
          {isForm ? <ConfigForm schema={schema} value={edited.value} onChange={config.change} faults={faults} /> : <YamlEditor label="Config as YAML" value={config.text} onInput={config.write} problems={[...edited.problems, ...faults.map(({ path, message }) => ({ line: config.lineOf(path), message }))]} onSubmit={onSubmit} />}
        </>
      )}
      {manifest && !isForm && <Known manifest={manifest} />}
    </div>
  );
}
