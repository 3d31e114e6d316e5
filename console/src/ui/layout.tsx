// The skeleton of pages: a head, sections, cards.
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { Icon, type IconName } from './icon';
import type { Tone } from './conditions';

export function Page({ children }: { children: ComponentChildren }) {
  return <div class="page">{children}</div>;
}

export interface Crumb {
  label: string;
  href: string;
}

interface HeadProps {
  title: ComponentChildren;
  subtitle?: ComponentChildren;
  actions?: ComponentChildren;
  breadcrumbs?: readonly Crumb[] | undefined;
  /** Stands beside the title, such as a status. */
  beside?: ComponentChildren;
}

/** The head of a page: where it is, what it is called, what can be done. */
export function PageHead({ title, subtitle, actions, breadcrumbs, beside }: HeadProps) {
  return (
    <header class="page-head">
      <div class="titles">
        {breadcrumbs && (
          <nav class="crumbs" aria-label="Breadcrumbs">
            <ol>{breadcrumbs.map(({ label, href }) => <li key={href}><a href={href}>{label}</a></li>)}</ol>
          </nav>
        )}
        <div class="toolbar">
          <h1>{title}</h1>
          {beside}
        </div>
        {subtitle && <p class="muted">{subtitle}</p>}
      </div>
      {actions && <div class="actions">{actions}</div>}
    </header>
  );
}

interface SectionProps {
  title: ComponentChildren;
  /** Stands beside the title: a count. */
  beside?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}

/** A part of a page with a heading of its own. */
export function Section({ title, beside, actions, children }: SectionProps) {
  const id = useId();
  return (
    <section class="section" aria-labelledby={id}>
      <header>
        <div class="titles">
          <h2 id={id}>{title}</h2>
          {beside}
        </div>
        {actions && <div class="toolbar">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Card({ children, flush, class: extra }: { children: ComponentChildren; flush?: boolean | undefined; class?: string | undefined }) {
  return <div class={`card${flush ? ' flush' : ''}${extra ? ` ${extra}` : ''}`}>{children}</div>;
}

export function Toolbar({ children, label }: { children: ComponentChildren; label?: string | undefined }) {
  return <div class="toolbar" role={label ? 'group' : undefined} aria-label={label}>{children}</div>;
}

/** Names and their values. */
export function KeyValue({ items }: { items: readonly (readonly [name: string, value: ComponentChildren] | undefined)[] }) {
  return (
    <dl class="kv">
      {items.filter((item) => item !== undefined).map(([name, value], index) => [<dt key={index}>{name}</dt>, <dd key={`${index}=`}>{value}</dd>])}
    </dl>
  );
}

interface CountProps {
  name: string;
  value: number | string;
  icon?: IconName | undefined;
  tone?: Tone | undefined;
  /** The tone of the number, where it is another than that of the icon, or none. */
  valueTone?: Tone | null | undefined;
  href?: string | undefined;
  pressed?: boolean | undefined;
  onPress?: (() => void) | undefined;
}

/** A number worth a tile; where it leads to what it counts a link, and where it shows that alone a button. */
export function Count({ name, value, icon, tone, valueTone = tone, href, pressed, onPress }: CountProps) {
  const inside = (
    <>
      <span class={valueTone ? `value tone-${valueTone}` : 'value'}>{typeof value === 'number' ? value.toLocaleString('en') : value}</span>
      <span class="name">{icon && <Icon name={icon} class={tone ? `tone-${tone}` : undefined} />}{name}</span>
    </>
  );
  if (onPress) return <button type="button" class="count" aria-pressed={pressed} onClick={onPress}>{inside}</button>;
  return href ? <a class="count" href={href}>{inside}</a> : <div class="count">{inside}</div>;
}
