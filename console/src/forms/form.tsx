// The form of one object: its fields, or its YAML; both show the same.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button, LinkButton } from '../ui/button';
import { Notice, ProblemView } from '../ui/feedback';
import { Field } from '../ui/field';
import { Radios, Select, TextInput } from '../ui/inputs';
import { Tabs } from '../ui/tabs';
import { useYamlLibrary, YamlEditor, type YamlLibrary } from '../ui/yaml';
import type { LineProblem, Read } from '../editor/yaml';
import { FieldView } from './fields';
import type { Thing } from './layout';
import { isEqual, isObject, pathText } from './path';
import { type Form, type FormOptions, useForm } from './use-form';

interface ObjectFormProps extends FormOptions {
  cancel: string;
  /** The namespaces to choose from; null where they may not be listed. */
  namespaces: readonly string[] | null;
  /** Hears whether something would be lost by leaving. */
  onDirty?: ((isDirty: boolean) => void) | undefined;
}

const NAME = ['metadata', 'name'];
const NAMESPACE = ['metadata', 'namespace'];

export function ObjectForm(props: ObjectFormProps) {
  const { layout, isNew, cancel, onDirty } = props;
  const form = useForm(props);
  const [tab, setTab] = useState('form');
  const text = useYaml(form, tab === 'yaml');
  const element = useRef<HTMLFormElement>(null);
  const [failures, setFailures] = useState(0);
  useEffect(() => onDirty?.(form.isDirty && !form.isSaving), [form.isDirty, form.isSaving]);

  // What stopped the saving gets the focus: the first field that is wrong, or else what the server said.
  useEffect(() => {
    if (failures === 0) return;
    const wrong = element.current?.querySelector<HTMLElement>('[aria-invalid="true"], .chip.wrong button') ?? element.current?.querySelector<HTMLElement>('[role="alert"]');
    const target = wrong?.matches('input, select, textarea, button') ? wrong : (wrong?.querySelector<HTMLElement>('input, select, textarea, button') ?? wrong);
    if (target?.matches('[role="alert"]')) target.tabIndex = -1;
    target?.focus();
  }, [failures]);

  const submit = async () => {
    if (text.problems.length > 0 && tab === 'yaml' && !text.isReadable) return;
    if (!(await form.submit())) setFailures((before) => before + 1);
  };
  const state = form.isSaving ? 'Saving' : form.wrong > 0 ? `${form.wrong === 1 ? 'One thing needs' : `${form.wrong} things need`} another look.` : !isNew && !form.isDirty ? 'Nothing is changed yet.' : '';

  return (
    <form class="form" ref={element} noValidate onSubmit={(event) => {
      event.preventDefault();
      void submit();
    }}>
      {form.problem && form.problem.causes.length === 0 && <ProblemView problem={form.problem} />}
      {form.head.length > 0 && (
        <Notice tone="bad" title="This cannot be saved as it is" live>
          <ul>{form.head.map(({ path, message }) => <li key={pathText(path)}>{path.length > 0 && <><code>{pathText(path)}</code> </>}{message}</li>)}</ul>
        </Notice>
      )}
      <Tabs label="How to edit" value={tab} onChange={setTab} tabs={[{ key: 'form', label: 'Form' }, { key: 'yaml', label: 'YAML' }]}>
        {tab === 'yaml' ? text.text !== undefined && (
          <YamlEditor label={`YAML of the ${layout.one}`} value={text.text} problems={text.problems} onInput={text.type} onBlur={() => form.blur([])} onSubmit={() => void submit()} />
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
      </footer>
    </form>
  );
}

function FormFields({ form, layout, isNew, namespaced, namespaces }: ObjectFormProps & { form: Form }) {
  return (
    <div class="stack">
      {isNew && (
        <section class="form-group" aria-label="General">
          <h2>General</h2>
          <div class="form-row">
            <Field label={layout.nameLabel} required error={form.error(NAME)} help="Lower-case letters, digits and '-'. It stays as it is.">
              <TextInput value={String(form.at(NAME) ?? '')} onInput={(value) => form.set(NAME, value)} onBlur={() => form.blur(NAME)} autofocus />
            </Field>
            {namespaced && (
              <Field label="Namespace" required error={form.error(NAMESPACE)}>
                <NamespaceInput form={form} namespaces={namespaces} />
              </Field>
            )}
          </div>
        </section>
      )}
      {form.parts.map(({ title, entries }) => (
        <section key={title} class="form-group" aria-label={title}>
          <h2>{title}</h2>
          <div class="form-grid">
            {entries.map((entry) => {
              if ('node' in entry) {
                const path = pathText(entry.node.path);
                const look = layout.looks[path];
                return <div key={path} class={look?.half ? 'half' : undefined}><FieldView form={form} node={entry.node} look={look} /></div>;
              }
              const choice = layout.choices[entry.choice];
              return choice && (
                <Field key={entry.choice} group label={choice.label} help={choice.help}>
                  <Radios value={form.choices[entry.choice] ?? ''} options={choice.options} onChange={(value) => form.choose(entry.choice, value)} />
                </Field>
              );
            })}
          </div>
        </section>
      ))}
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
