// A label, an input, its help and its error, tied together for those who do not see them side by side.
import { type ComponentChildren, createContext } from 'preact';
import { useContext, useId } from 'preact/hooks';
import { Icon } from './icon';

/** What an input inside a Field has to say of itself. */
export interface Wiring {
  id: string | undefined;
  describedBy: string | undefined;
  invalid: boolean;
  required: boolean;
}

/** Outside of a Field, and in one whose inputs share a label, an input says this of itself on its own. */
const ALONE: Wiring = { id: undefined, describedBy: undefined, invalid: false, required: false };

const Wires = createContext(ALONE);

/** The wiring of the Field around this input. */
export function useWiring(): Wiring {
  return useContext(Wires);
}

interface FieldProps {
  label: ComponentChildren;
  help?: ComponentChildren;
  error?: string | undefined;
  required?: boolean | undefined;
  /** Several inputs share the label: it becomes a legend. */
  group?: boolean | undefined;
  children: ComponentChildren;
}

/** What is wrong with a field; whatever is wrong says with `id` that this describes it. */
export function FieldError({ id, children }: { id: string; children: string | undefined }) {
  if (children === undefined) return null;
  return (
    <span class="field-error" id={id}>
      <Icon name="alert" />
      <span>{children}</span>
    </span>
  );
}

/** One field of a form. The input in it takes its id and its descriptions from here. */
export function Field({ label, help, error, required = false, group, children }: FieldProps) {
  const id = useId();
  const describedBy = [help ? `${id}-help` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ') || undefined;
  const words = (
    <>
      {label}
      {required && <span class="need" aria-hidden="true">*</span>}
    </>
  );
  const rest = (
    <>
      <Wires.Provider value={group ? ALONE : { id, describedBy, invalid: error !== undefined, required }}>{children}</Wires.Provider>
      <FieldError id={`${id}-error`}>{error}</FieldError>
      {help && <span class="help" id={`${id}-help`}>{help}</span>}
    </>
  );
  if (group) {
    return (
      <fieldset class="field" aria-describedby={describedBy} aria-invalid={error !== undefined || undefined}>
        <legend>{words}</legend>
        {rest}
      </fieldset>
    );
  }
  return (
    <div class="field">
      <label for={id}>{words}</label>
      {rest}
    </div>
  );
}
