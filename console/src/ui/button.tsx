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
  title?: string | undefined;
  onClick?: ((event: MouseEvent) => void) | undefined;
}

function classes({ variant = 'plain', small }: Look, extra = ''): string {
  return `btn${variant === 'plain' ? '' : ` ${variant}`}${small ? ' small-btn' : ''}${extra}`;
}

/** A button. While busy it turns, and takes no further clicks. */
export function Button({ variant, icon, small, children, type = 'button', busy, disabled, title, onClick }: ButtonProps) {
  return (
    <button
      type={type}
      class={classes({ variant, small })}
      disabled={disabled || busy}
      aria-busy={busy || undefined}
      title={title}
      onClick={onClick}
    >
      {busy ? <Icon name="spinner" class="spin" /> : icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

interface IconButtonProps {
  icon: IconName;
  label: string;
  small?: boolean | undefined;
  pressed?: boolean | undefined;
  onClick: () => void;
}

/** A button that shows an icon alone. Its label is read aloud, and shown while the pointer rests on it. */
export function IconButton({ icon, label, small, pressed, onClick }: IconButtonProps) {
  return (
    <button type="button" class={classes({ variant: 'quiet', small }, ' icon-only')} aria-label={label} aria-pressed={pressed} title={label} onClick={onClick}>
      <Icon name={icon} />
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({ href, variant, icon, small, children }: Look & { href: string }) {
  return (
    <a class={classes({ variant, small })} href={href}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}
