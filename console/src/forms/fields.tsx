// Draws the fields of a form, each by its widget.
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Json } from '../api/generated';
import type { JsonSchema } from '../lib/kubernetes';
import { Button, IconButton } from '../ui/button';
import { Chips } from '../ui/chips';
import { Field, FieldError } from '../ui/field';
import { type Option, Radios, Select, Switch, TextInput } from '../ui/inputs';
import { useYamlLibrary, YamlEditor } from '../ui/yaml';
import { type FieldNode, isWhole, itemOf, shown } from './model';
import { isEqual, isObject, isSame, pathText } from './path';
import type { FieldForm } from './use-form';

/** The most choices that stand side by side. */
const MOST_RADIOS = 3;

interface FieldProps {
  form: FieldForm;
  node: FieldNode;
}

/** One field, with whatever is in it. What leads to a field finds it by its path. */
export function FieldView(props: FieldProps) {
  return <div class="at" data-path={pathText(props.node.path)}><Widget {...props} /></div>;
}

function Widget(props: FieldProps) {
  const { form, node } = props;
  // From then on: what somebody types in the YAML must not put another widget in its place.
  const isYaml = useRef(false);
  isYaml.current ||= !isWhole(node.widget, form.at(node.path));
  switch (isYaml.current ? 'yaml' : node.widget) {
    case 'group': return <GroupField {...props} />;
    case 'switch': return <SwitchField {...props} />;
    case 'list': return <ListField {...props} />;
    case 'map': return <MapField {...props} />;
    case 'choice': return <ChoiceField {...props} />;
    case 'yaml': return <YamlField {...props} />;
    default: return <LineField {...props} />;
  }
}

/** What a number's text means: the number, or the text itself, which is then wrong and stays visible. */
export function numberOf(text: string): number | string {
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text.trim()) ? Number(text) : text;
}

/** A help that says no more than the label is none. */
function helpOf(help: string, label: string): string | undefined {
  return help === '' || help.replace(/\.$/, '').toLowerCase() === label.toLowerCase() ? undefined : help;
}

const lookOf = ({ node: { label, help, placeholder, required } }: FieldProps) => ({ label, help: helpOf(help, label), placeholder, required });

/** What a group of inputs says of itself when it is wrong as a whole, and where that is said. */
const invalid = (id: string, error: string | undefined) => (error === undefined ? {} : { 'aria-invalid': true, 'aria-describedby': id });

/** A field of one line: a text, a number, either, or several texts as chips. */
function LineField(props: FieldProps) {
  const { form, node } = props;
  const { label, help, placeholder, required } = lookOf(props);
  const { path, widget } = node;
  const value = form.at(path);
  const text = shown(value) ?? '';
  const blur = () => form.blur(path);
  const input = () => {
    if (widget === 'chips') {
      const chips = Array.isArray(value) ? value.map(String) : [];
      const faults = form.faultsIn(path);
      return <Chips value={chips} placeholder={placeholder} onChange={(next) => form.set(path, next)} onBlur={blur} wrong={(_, at) => faults.find((fault) => isSame(fault.path, [...path, at]))?.message} />;
    }
    if (node.secret) return <SecretInput value={text} onInput={(next) => form.set(path, next)} onBlur={blur} />;
    const take = widget === 'number' || widget === 'int-or-string' ? (next: string) => form.set(path, next === '' ? undefined : numberOf(next)) : (next: string) => form.set(path, next);
    return <TextInput lines value={text} placeholder={placeholder} onInput={take} onBlur={blur} numeric={widget === 'number'} />;
  };
  return <Field label={label} help={help} required={required} error={form.error(path, widget === 'chips')}>{input()}</Field>;
}

/** A text that is not shown as it is typed, unless somebody wants to see it. */
function SecretInput({ value, onInput, onBlur }: { value: string; onInput: (value: string) => void; onBlur: () => void }) {
  const [isShown, show] = useState(false);
  return (
    <span class="secret">
      <TextInput lines type={isShown ? 'text' : 'password'} autocomplete="new-password" value={value} onInput={onInput} onBlur={onBlur} />
      <IconButton icon="eye" label={isShown ? 'Hide what is typed' : 'Show what is typed'} pressed={isShown} onClick={() => show(!isShown)} />
    </span>
  );
}

/** One of the values of an enum. What holds without a choice is marked, and written only when it is chosen. */
function ChoiceField(props: FieldProps) {
  const { form, node } = props;
  const { label, help, required } = lookOf(props);
  const { path, schema } = node;
  const options: readonly Option[] = (schema.enum ?? []).map((value) => ({ value: String(value), label: String(value) }));
  const fallback = shown(schema.default);
  const value = shown(form.at(path)) ?? fallback ?? '';
  const choose = (next: string) => {
    form.set(path, next);
    form.blur(path);
  };
  // From then on: whether it must be chosen may change with the choice, and another widget would not have the focus.
  const isRadios = useRef(options.length <= MOST_RADIOS && (required || fallback !== undefined)).current;
  if (isRadios) {
    return <Field group label={label} help={help} required={required} error={form.error(path)}><Radios value={value} options={options} onChange={choose} /></Field>;
  }
  const none = { value: '', label: required ? 'Choose one' : 'Not set' };
  return <Field label={label} help={help} required={required} error={form.error(path)}><Select value={value} options={fallback === undefined ? [none, ...options] : options} onChange={choose} onBlur={() => form.blur(path)} /></Field>;
}

function SwitchField(props: FieldProps) {
  const { form, node } = props;
  const { label, help } = lookOf(props);
  const { path, schema } = node;
  const id = useId();
  const error = form.error(path);
  const describedBy = [help ? `${id}-help` : '', error ? id : ''].filter(Boolean).join(' ') || undefined;
  return (
    <div class="field">
      <Switch checked={(form.at(path) ?? schema.default) === true} describedBy={describedBy} onChange={(on) => {
        form.set(path, on);
        form.blur(path);
      }}>{label}</Switch>
      {help && <span class="help" id={`${id}-help`}>{help}</span>}
      <FieldError id={id}>{error}</FieldError>
    </div>
  );
}

/** Fields that belong together. */
function GroupField(props: FieldProps) {
  const { form, node } = props;
  const { label, help } = lookOf(props);
  const id = useId();
  const error = form.error(node.path);
  return (
    <fieldset class="form-group" {...invalid(id, error)}>
      <legend>{label}</legend>
      {help && <p class="help">{help}</p>}
      <FieldError id={id}>{error}</FieldError>
      {node.fields.map((field) => <FieldView key={field.key} form={form} node={field} />)}
    </fieldset>
  );
}

/** What a new entry of a list begins as. */
function blank({ type, default: fallback, 'x-kubernetes-int-or-string': either }: JsonSchema): Json {
  if (fallback !== undefined) return fallback;
  return type === 'object' && !either ? {} : '';
}

/** A list of objects, or of numbers and choices: each entry can be taken away, and one more added. */
function ListField(props: FieldProps) {
  const { form, node } = props;
  const { label, help, required } = lookOf(props);
  const { path, schema } = node;
  const value = form.at(path);
  const list: readonly unknown[] = Array.isArray(value) ? value : [];
  const items = schema.items ?? {};
  const box = useRef<HTMLFieldSetElement>(null);
  const added = useRef(false);
  useEffect(() => {
    if (!added.current) return;
    added.current = false;
    const rows = box.current?.querySelectorAll(':scope > .repeat > .repeat-row');
    rows?.[rows.length - 1]?.querySelector<HTMLElement>('input, select')?.focus();
  }, [list.length]);
  const id = useId();
  const error = form.error(path);
  return (
    <fieldset class={list.length > 0 ? 'form-group' : 'field'} ref={box} {...invalid(id, error)}>
      <legend>{label}{required && <span class="need" aria-hidden="true"> *</span>}</legend>
      {help && <p class="help">{help}</p>}
      <FieldError id={id}>{error}</FieldError>
      {list.length > 0 && <div class="repeat stack">
        {list.map((_, at) => {
          return (
            <div class="repeat-row" key={at}>
              <FieldView form={form} node={{ ...itemOf(node, at, form.at([])), label: `${label} ${at + 1}`, help: '' }} />
              <IconButton icon="trash" label={`Remove ${label} ${at + 1}`} onClick={() => form.set(path, list.filter((_, index) => index !== at))} />
            </div>
          );
        })}
      </div>}
      <div>
        <Button small icon="plus" onClick={() => {
          added.current = true;
          form.set(path, [...list, blank(items)]);
        }}>Add</Button>
      </div>
    </fieldset>
  );
}

/** Keys and their values. A key that is being typed is no key yet, so that rows do not jump. */
function MapField(props: FieldProps) {
  const { form, node } = props;
  const { label, help, required } = lookOf(props);
  const { path, schema } = node;
  const value = form.at(path);
  const inner = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : {};
  const read = inner.type === 'string' ? String : numberOf;
  const [rows, setRows] = useState<Row[]>(() => rowsOf(value));
  const asMap = (rows: readonly Row[]) => Object.fromEntries(rows.filter(([key]) => key !== ''));
  // What came from elsewhere, such as the YAML, replaces the rows.
  const held = isObject(value) ? value : {};
  useEffect(() => {
    if (!isEqual(asMap(rows), held)) setRows(rowsOf(value));
  }, [value]);
  const put = (next: Row[]) => {
    setRows(next);
    const map = asMap(next);
    form.set(path, Object.keys(map).length === 0 ? undefined : map);
  };
  const change = (at: number, changed: Row) => put(rows.map((row, index) => (index === at ? changed : row)));
  return (
    <Field group label={label} help={help} required={required} error={form.error(path, true)}>
      <div class="stack tight">
        {rows.map(([key, held], at) => (
          <div class="pair" key={at}>
            <TextInput lines label={`${label}: key ${at + 1}`} placeholder="key" value={key} onInput={(text) => change(at, [text, held])} onBlur={() => form.blur(path)} />
            <TextInput lines label={`${label}: value of ${key || `key ${at + 1}`}`} placeholder="value" value={shown(held) ?? ''} onInput={(text) => change(at, [key, read(text)])} onBlur={() => form.blur(path)} />
            <IconButton icon="trash" label={`Remove ${key || `key ${at + 1}`}`} onClick={() => put(rows.filter((_, index) => index !== at))} />
          </div>
        ))}
        <div><Button small icon="plus" onClick={() => setRows([...rows, ['', '']])}>Add</Button></div>
      </div>
    </Field>
  );
}

/** A key and what stands at it: only what is typed anew is read anew. */
type Row = [key: string, value: unknown];

const rowsOf = (value: unknown): Row[] => (isObject(value) ? Object.entries(value) : []);

/** Whatever no other widget can show. */
function YamlField(props: FieldProps) {
  const { form, node } = props;
  const { label, help, required } = lookOf(props);
  const { path } = node;
  const value = form.at(path);
  const library = useYamlLibrary();
  const [text, setText] = useState<string | undefined>(undefined);
  const [wrong, setWrong] = useState<{ line: number; message: string }[]>([]);
  const known = useRef<unknown>(undefined);
  useEffect(() => {
    if (!library || (text !== undefined && isEqual(known.current, value))) return;
    known.current = value;
    setText(library.print(value));
  }, [library, value]);
  const type = (next: string) => {
    if (!library) return;
    const { value, problems } = library.read(next);
    setText(next);
    setWrong(problems);
    form.unreadable(path, problems.length > 0 ? 'cannot be read as YAML' : undefined);
    if (problems.length > 0) return;
    known.current = value ?? undefined;
    form.set(path, value ?? undefined);
  };
  return (
    <Field group label={label} help={help} required={required} error={form.error(path, true)}>
      {text !== undefined && <YamlEditor label={label} value={text} problems={wrong} onInput={type} onBlur={() => form.blur(path)} />}
    </Field>
  );
}
