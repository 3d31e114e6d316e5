// The inputs of forms and toolbars. Inside a Field they take its label, help and error; elsewhere they need `label`.
import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';
import { useWiring } from './field';
import { Icon, type IconName } from './icon';
import { needsLines } from './text';

interface Shared {
  /** What it is called where no Field says it. */
  label?: string | undefined;
  onBlur?: (() => void) | undefined;
}

interface TextProps extends Shared {
  value: string;
  onInput: (value: string) => void;
  type?: 'text' | 'password' | undefined;
  placeholder?: string | undefined;
  autocomplete?: string | undefined;
  mono?: boolean | undefined;
  autofocus?: boolean | undefined;
  /** A telephone shows digits. */
  numeric?: boolean | undefined;
  /** A text that is long or has several lines gets several: an input would take its line feeds out. */
  lines?: boolean | undefined;
}

/** What every input says of itself. */
function attributes(wiring: ReturnType<typeof useWiring>, { label, onBlur }: Shared) {
  return {
    id: wiring.id,
    'aria-label': label,
    'aria-describedby': wiring.describedBy,
    'aria-invalid': wiring.invalid || undefined,
    'aria-required': wiring.required || undefined,
    onBlur,
  };
}

/** A text, in one line or in several. */
export function TextInput(props: TextProps) {
  const { value, onInput, type = 'text', placeholder, autocomplete = 'off', mono, autofocus, numeric, lines } = props;
  const typed = useRef('');
  const isArea = useRef(false);
  // What is typed changes nothing: another element would not have the focus.
  if (lines && value !== typed.current) isArea.current = needsLines(value);
  const common = {
    ...attributes(useWiring(), props), value, placeholder, autofocus, autocapitalize: 'off', spellcheck: false,
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) => {
      typed.current = currentTarget.value;
      onInput(currentTarget.value);
    },
  } as const;
  if (isArea.current) return <textarea {...common} class={type === 'password' ? 'input covered' : 'input'} rows={Math.min(16, value.split('\n').length)} />;
  return <input {...common} class={mono ? 'input mono' : 'input'} type={type as 'text'} autocomplete={autocomplete as 'off'} inputMode={numeric ? 'decimal' : undefined} />;
}

export interface Option {
  value: string;
  label: string;
  icon?: IconName | undefined;
}

interface ChoiceProps extends Shared {
  value: string;
  options: readonly Option[];
  onChange: (value: string) => void;
}

/** One of many. */
export function Select(props: ChoiceProps) {
  const { value, options, onChange } = props;
  return (
    <span class="select">
      <select {...attributes(useWiring(), props)} class="input" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map((option) => <option key={option.value} value={option.value}>{option.label}</option>)}
      </select>
      <Icon name="chevron" />
    </span>
  );
}

/** One of few. Stands in a Field with `group`, whose legend is its name. */
export function Radios({ value, options, onChange }: ChoiceProps) {
  const name = useId();
  return (
    <div class="radios">
      {options.map((option) => (
        <label key={option.value} class="radio">
          <input type="radio" name={name} value={option.value} checked={value === option.value} onChange={() => onChange(option.value)} />
          <span>{option.label}</span>
        </label>
      ))}
    </div>
  );
}

interface SwitchProps {
  checked: boolean;
  onChange: (checked: boolean) => void;
  children: ComponentChildren;
  describedBy?: string | undefined;
}

/** On or off, with its words beside it. */
export function Switch({ checked, onChange, children, describedBy }: SwitchProps) {
  return (
    <label class="switch">
      <input type="checkbox" role="switch" checked={checked} aria-describedby={describedBy} onChange={(event) => onChange(event.currentTarget.checked)} />
      <span>{children}</span>
    </label>
  );
}

interface SearchProps {
  value: string;
  onInput: (value: string) => void;
  label: string;
  /** The key that leads here, shown while the input is empty. */
  hint?: string | undefined;
}

/** Filters what is below it. Esc empties it. */
export function SearchInput({ value, onInput, label, hint }: SearchProps) {
  return (
    <span class="search">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label={label}
        placeholder={label}
        value={value}
        autocomplete="off"
        spellcheck={false}
        data-search=""
        onInput={(event) => onInput(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Escape' || value === '') return;
          event.stopPropagation();
          onInput('');
        }}
      />
      {hint && <kbd aria-hidden="true">{hint}</kbd>}
    </span>
  );
}

/** Switches between two or three ways to see the same. */
export function Segment({ value, options, onChange, label }: ChoiceProps & { label: string }) {
  return (
    <span class="segment" role="group" aria-label={label}>
      {options.map((option) => (
        <button key={option.value} type="button" class="btn" aria-pressed={value === option.value} aria-label={option.label} title={option.label} onClick={() => onChange(option.value)}>
          {option.icon ? <Icon name={option.icon} /> : option.label}
        </button>
      ))}
    </span>
  );
}
