// The form of one object: its fields, or its YAML; both show the same.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Button, LinkButton } from '../ui/button';
import { Notice, ProblemView } from '../ui/feedback';
import { Field } from '../ui/field';
import { Select, TextInput } from '../ui/inputs';
import { Tabs } from '../ui/tabs';
import { useYamlLibrary, YamlEditor, type YamlLibrary } from '../ui/yaml';
import type { LineProblem, Read } from '../editor/yaml';
import { FieldView } from './fields';
import type { Thing } from './model';
import { isEqual, isObject, isSame, type Path, pathText } from './path';
import { type Form, type FormOptions, useForm } from './use-form';

interface ObjectFormProps extends FormOptions {
  /** What the object is called. */
  kind: string;
  cancel: string;
  /** The namespaces to choose from; null where they may not be listed. */
  namespaces: readonly string[] | null;
  /** Hears whether something would be lost by leaving. */
  onDirty?: ((isDirty: boolean) => void) | undefined;
}

const NAME = ['metadata', 'name'];
const NAMESPACE = ['metadata', 'namespace'];

/** So many fields that are wrong are named beside the button. */
const MOST_NAMED = 5;

/** Goes to the input of a field, or to the first of those in it. */
function focusField(form: HTMLElement, path: Path): void {
  for (let length = path.length; length > 0; length -= 1) {
    const field = form.querySelector<HTMLElement>(`[data-path="${CSS.escape(pathText(path.slice(0, length)))}"]`);
    const input = field?.querySelector<HTMLElement>('[aria-invalid="true"]:is(input, select, textarea)') ?? field?.querySelector<HTMLElement>('input, select, textarea, button');
    if (!input) continue;
    input.focus();
    input.scrollIntoView({ block: 'center' });
    return;
  }
}

export function ObjectForm(props: ObjectFormProps) {
  const { kind, isNew, cancel, onDirty } = props;
  const form = useForm(props);
  const [tab, setTab] = useState('form');
  const text = useYaml(form, tab === 'yaml');
  const element = useRef<HTMLFormElement>(null);
  const [failures, setFailures] = useState(0);
  const [wanted, want] = useState<{ path: Path } | undefined>(undefined);
  useEffect(() => onDirty?.(form.isDirty && !form.isSaving), [form.isDirty, form.isSaving]);

  // What stopped the saving gets the focus: the first field that is wrong, or else what the server said.
  useEffect(() => {
    if (failures === 0) return;
    const wrong = element.current?.querySelector<HTMLElement>('[aria-invalid="true"], .chip.wrong button') ?? element.current?.querySelector<HTMLElement>('[role="alert"]');
    const target = wrong?.matches('input, select, textarea, button') ? wrong : (wrong?.querySelector<HTMLElement>('input, select, textarea, button') ?? wrong);
    if (target?.matches('[role="alert"]')) target.tabIndex = -1;
    target?.focus();
  }, [failures]);

  // Where a field says what is wrong, the form is shown; else the line of the YAML.
  const lead = (path: Path) => {
    if (form.hasPlace(path) !== (tab === 'form')) setTab(form.hasPlace(path) ? 'form' : 'yaml');
    want({ path });
  };
  // Where somebody types, the cursor stays.
  const type = (next: string) => {
    want(undefined);
    text.type(next);
  };
  const choose = (next: string) => {
    want(undefined);
    setTab(next);
  };
  useEffect(() => {
    if (wanted && tab === 'form' && element.current) focusField(element.current, wanted.path);
  }, [wanted, tab]);
  const goTo = useMemo(() => (wanted && text.text !== undefined ? { line: text.lineOf(wanted.path) } : undefined), [wanted, text.text]);

  const submit = async () => {
    if (text.problems.length > 0 && tab === 'yaml' && !text.isReadable) return;
    if (!(await form.submit())) setFailures((before) => before + 1);
  };
  const named = form.faults.map(({ path }) => path).filter((path, at, all) => path.length > 1 && all.findIndex((one) => isSame(one, path)) === at).slice(0, MOST_NAMED);
  const state = form.isSaving ? 'Saving' : form.wrong > 0 ? `${form.wrong === 1 ? 'One thing needs' : `${form.wrong} things need`} another look.` : !isNew && !form.isDirty ? 'Nothing is changed yet.' : '';

  return (
    <form class="form" ref={element} noValidate onSubmit={(event) => {
      event.preventDefault();
      void submit();
    }}>
      {form.problem && form.problem.causes.length === 0 && <ProblemView problem={form.problem} />}
      {form.head.length > 0 && (
        <Notice tone="bad" title="This cannot be saved as it is" live>
          <ul>{form.head.map(({ path, message }, at) => <li key={at}>{path.length > 0 && <><Lead path={path} lead={lead} /> </>}{message}</li>)}</ul>
        </Notice>
      )}
      <Tabs label="How to edit" value={tab} onChange={choose} tabs={[{ key: 'form', label: 'Form' }, { key: 'yaml', label: 'YAML' }]}>
        {tab === 'yaml' ? text.text !== undefined && (
          <YamlEditor label={`YAML of the ${kind}`} value={text.text} problems={text.problems} goTo={goTo} onInput={type} onBlur={() => form.blur([])} onSubmit={() => void submit()} />
        ) : text.isReadable ? (
          <FormFields form={form} {...props} />
        ) : (
          <Notice tone="warn" title="The YAML cannot be read" actions={<Button small onClick={() => text.drop()}>Drop what was typed</Button>}>Mend it first, or go on with what was there before.</Notice>
        )}
      </Tabs>
      <footer class="form-foot">
        <Button type="submit" variant="primary" busy={form.isSaving} disabled={!isNew && !form.isDirty}>Save</Button>
        <LinkButton href={cancel}>Cancel</LinkButton>
        <span class="state" role="status">{state}</span>
        {form.wrong > 0 && named.map((path) => <Lead key={pathText(path)} path={path} lead={lead} />)}
      </footer>
    </form>
  );
}

/** The name of a field that leads to it. */
function Lead({ path, lead }: { path: Path; lead: (path: Path) => void }) {
  return <button type="button" class="btn quiet small-btn" title="Go there" onClick={() => lead(path)}><code>{pathText(path)}</code></button>;
}

function FormFields({ form, isNew, namespaced, namespaces }: ObjectFormProps & { form: Form }) {
  return (
    <div class="stack">
      {isNew && (
        <section class="form-group" aria-label="General">
          <h2>General</h2>
          <div class="form-row">
            <div data-path="metadata.name">
              <Field label="Name" required error={form.error(NAME)} help="Lower-case letters, digits, '-' and '.'. It stays as it is.">
                <TextInput value={String(form.at(NAME) ?? '')} onInput={(value) => form.set(NAME, value)} onBlur={() => form.blur(NAME)} autofocus />
              </Field>
            </div>
            {namespaced && (
              <div data-path="metadata.namespace">
                <Field label="Namespace" required error={form.error(NAMESPACE)}>
                  <NamespaceInput form={form} namespaces={namespaces} />
                </Field>
              </div>
            )}
          </div>
        </section>
      )}
      {form.fields.length > 0 && (
        <section class="form-group" aria-label="Settings">
          <h2>Settings</h2>
          {form.fields.map((node) => <FieldView key={node.key} form={form} node={node} />)}
        </section>
      )}
    </div>
  );
}

function NamespaceInput({ form, namespaces }: { form: Form; namespaces: readonly string[] | null }) {
  const value = String(form.at(NAMESPACE) ?? '');
  if (!namespaces) return <TextInput value={value} onInput={(value) => form.set(NAMESPACE, value)} onBlur={() => form.blur(NAMESPACE)} />;
  const options = namespaces.map((name) => ({ value: name, label: name }));
  return <Select value={value} options={namespaces.includes(value) ? options : [{ value, label: value }, ...options]} onChange={(value) => form.set(NAMESPACE, value)} onBlur={() => form.blur(NAMESPACE)} />;
}

/** The object's YAML: printed when it is shown, and from then on as it was typed, with its comments. */
function useYaml(form: Form, isShown: boolean) {
  const library = useYamlLibrary(isShown);
  const [text, setText] = useState<string | undefined>(undefined);
  const [reading, setReading] = useState<Read | undefined>(undefined);
  const isReadable = (reading?.problems.length ?? 0) === 0;

  const take = (library: YamlLibrary, next: string) => {
    const read = library.read(next);
    if (read.problems.length === 0 && !isObject(read.value)) read.problems.push({ line: 1, message: 'an object must stand here' });
    setText(next);
    setReading(read);
    return read;
  };
  const print = (library: YamlLibrary) => take(library, library.print(form.thing));
  // Before the editor is drawn, so that it begins with this.
  useLayoutEffect(() => {
    if (library && isShown && isReadable && !isEqual(reading?.value, form.thing)) print(library);
  }, [library, isShown]);
  // What the server finds wrong with the object stands at its lines.
  const found: LineProblem[] = !reading ? [] : !isReadable ? reading.problems : form.faults.map(({ path, message }) => ({ line: reading.lineOf(path), message: `${pathText(path)} ${message}`.trim() }));
  return {
    text,
    isReadable,
    lineOf: (path: Path) => reading?.lineOf(path) ?? 1,
    problems: found,
    type: (next: string) => {
      if (!library) return;
      const { value, problems } = take(library, next);
      if (problems.length === 0) form.replace(value as Thing);
      form.unreadable([], problems.length === 0 ? undefined : 'The YAML cannot be read');
    },
    drop: () => {
      if (library) print(library);
      form.unreadable([], undefined);
    },
  };
}
