import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Problem } from '../lib/api';
import { Button, IconButton, type Variant } from './button';
import { ProblemView } from './feedback';
import { Field } from './field';
import { TextInput } from './inputs';

/** What makes a dialog of an element for as long as it is rendered; then the focus goes back to what had it. Esc and a click beside it close it. */
export function useModal(onClose: () => void) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key arrives: an effect that waits for the paint would let it go to the page behind.
  useLayoutEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected && document.activeElement === document.body) before.focus();
    };
  }, []);
  return {
    ref: dialog,
    onCancel: (event: Event) => {
      event.preventDefault();
      onClose();
    },
    onMouseDown: (event: MouseEvent) => event.target === event.currentTarget && onClose(),
  };
}

interface DialogProps {
  title: string;
  onClose: () => void;
  onSubmit?: (() => void) | undefined;
  children: ComponentChildren;
  /** The buttons at its foot. */
  actions?: ComponentChildren;
  wide?: boolean | undefined;
}

/** A modal dialog, with a cross that closes it too. */
export function Dialog({ title, onClose, onSubmit, children, actions, wide }: DialogProps) {
  const id = useId();
  const modal = useModal(onClose);
  return (
    <dialog {...modal} class={wide ? 'dialog wide' : 'dialog'} aria-labelledby={id}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <header>
          <h2 id={id}>{title}</h2>
          <IconButton small icon="cross" label="Close" onClick={onClose} />
        </header>
        {children}
        {actions && <footer>{actions}</footer>}
      </form>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  /** What has to be typed. */
  name: string;
  /** The word on the button. */
  verb: string;
  variant?: Variant | undefined;
  children?: ComponentChildren;
  problem?: Problem | null | undefined;
  busy?: boolean | undefined;
  /** Whether something else than the name is missing. */
  disabled?: boolean | undefined;
  onConfirm: () => void;
  onClose: () => void;
}

/** Asks for a name before something that is hard to take back. */
export function ConfirmByName({ title, name, verb, variant = 'danger', children, problem, busy, disabled = false, onConfirm, onClose }: ConfirmProps) {
  const [typed, setTyped] = useState('');
  const isRight = typed.trim() === name && !disabled;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => isRight && !busy && onConfirm()}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant={variant} disabled={!isRight} busy={busy}>{verb}</Button>
        </>
      }
    >
      {children}
      <Field label={<>Type <strong>{name}</strong> to confirm</>}>
        <TextInput value={typed} onInput={setTyped} autofocus />
      </Field>
      {problem && <ProblemView problem={problem} />}
    </Dialog>
  );
}
