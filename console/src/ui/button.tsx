// Buttons, and links that look like them.
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon';

export type Variant = 'primary' | 'plain' | 'danger' | 'quiet';

interface Look {
  variant?: Variant | undefined;
  icon?: IconName | undefined;
  small?: boolean | undefined;
  children?: ComponentChildren;
}

interface ButtonProps extends Look {
  type?: 'button' | 'submit' | undefined;
  busy?: boolean | undefined;
  disabled?: boolean | undefined;
  pressed?: boolean | undefined;
  expanded?: boolean | undefined;
  controls?: string | undefined;
  title?: string | undefined;
  id?: string | undefined;
  onClick?: ((event: MouseEvent) => void) | undefined;
}

function classes({ variant = 'plain', small }: Look, extra = ''): string {
  return `btn${variant === 'plain' ? '' : ` ${variant}`}${small ? ' small-btn' : ''}${extra}`;
}

/** A button. While busy it turns, and takes no further clicks. */
export function Button({ variant, icon, small, children, type = 'button', busy, disabled, pressed, expanded, controls, title, id, onClick }: ButtonProps) {
  return (
    <button
      id={id}
      type={type}
      class={classes({ variant, small })}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-controls={controls}
      title={title}
      onClick={onClick}
    >
      {busy ? <Icon name="spinner" class="spin" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ButtonProps, 'children' | 'icon'> {
  icon: IconName;
  label: string;
}

/** A button that shows an icon alone. Its label is read aloud, and shown while the pointer rests on it. */
export function IconButton({ icon, label, variant = 'quiet', small, type = 'button', busy, disabled, pressed, expanded, controls, id, onClick }: IconButtonProps) {
  return (
    <button
      id={id}
      type={type}
      class={classes({ variant, small }, ' icon-only')}
      disabled={disabled || busy}
      aria-label={label}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-controls={controls}
      title={label}
      onClick={onClick}
    >
      <Icon name={busy ? 'spinner' : icon} class={busy ? 'spin' : undefined} />
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({ href, variant, icon, small, children, title }: Look & { href: string; title?: string | undefined }) {
  return (
    <a class={classes({ variant, small })} href={href} title={title}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}
