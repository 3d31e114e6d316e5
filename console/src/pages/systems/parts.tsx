// Small parts that the pages of a system share.
import type { ComponentChildren } from 'preact';
import { computed, type ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { Json } from '../../api/generated';
import { useCan } from '../../lib/can';
import { navigate } from '../../lib/router';
import { Button, LinkButton, type Variant } from '../../ui/button';
import { Icon, type IconName } from '../../ui/icon';
import { beginning } from '../../ui/text';
import { lastNamespace, type System } from './system';

/** A host name that is safe to make a link of: what else stands in a status is shown as text. */
export function isHost(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:\d{1,5})?$/i.test(text);
}

/** The names under which a Darkroom is served, as links. */
export function Domains({ domains, most = 3, silent }: { domains: Json | undefined; most?: number | undefined; silent?: boolean | undefined }) {
  const all = Array.isArray(domains) ? domains.filter((domain) => typeof domain === 'string') : [];
  if (all.length === 0) return <span class="muted">None yet</span>;
  return (
    <span class="domains">
      {all.slice(0, most).map((domain) => (isHost(domain)
        ? <a key={domain} href={`http://${domain}/`} target="_blank" rel="noopener noreferrer" title={`${domain} (opens anew)`}><span class="cut">{domain}</span><Icon name="external" /></a>
        : <span key={domain} class="cut">{beginning(domain, 260)}</span>))}
      {all.length > most && !silent && <span class="muted nowrap" title={all.slice(most).join('\n')}>+{all.length - most} more</span>}
    </span>
  );
}

const TYPES: Record<string, [IconName, string]> = { WebFolder: ['folder', 'Web Folder'], S3: ['bucket', 'Amazon S3'] };

const known = (type: string) => (Object.hasOwn(TYPES, type) ? TYPES[type] : undefined);

/** The name of a type of source. */
export function typeName(type: Json | undefined): string {
  return typeof type === 'string' ? (known(type)?.[1] ?? beginning(type, 40)) : 'Unknown';
}

/** The type of a source: its icon and its name. */
export function TypeOf({ type }: { type: Json | undefined }) {
  const icon = typeof type === 'string' ? known(type)?.[0] : undefined;
  return <span class="type"><Icon name={icon ?? 'help'} />{typeName(type)}</span>;
}

interface AllowedProps {
  can: ReadonlySignal<boolean | undefined>;
  /** What the user would not be allowed, for the button's title. */
  what: string;
  icon?: IconName | undefined;
  children: ComponentChildren;
}

const whyNot = (allowed: boolean | undefined, what: string): string | undefined => (allowed === false ? `You may not ${what}.` : undefined);

/** A link to where something is done, for those who may do it. */
export function AllowedLink({ can, what, href, icon, variant, children }: AllowedProps & { href: string; variant?: Variant | undefined }) {
  const allowed = can.value;
  if (allowed) return <LinkButton href={href} icon={icon} variant={variant}>{children}</LinkButton>;
  return <Button icon={icon} variant={variant} disabled title={whyNot(allowed, what)} onClick={() => navigate(href)}>{children}</Button>;
}

/** A button that works for those who may do what it does. */
export function AllowedButton({ can, what, icon, children, onClick }: AllowedProps & { onClick: () => void }) {
  const allowed = can.value;
  return <Button icon={icon} disabled={allowed !== true} title={whyNot(allowed, what)} onClick={onClick}>{children}</Button>;
}

/** Whether the user may make one of a system: everywhere, in the namespace that is shown, or in the one where something was made last. */
export function useCanCreate({ group, plural, namespaced }: System, namespace = ''): ReadonlySignal<boolean | undefined> {
  const check = { verb: 'create', group, resource: plural };
  const everywhere = useCan(namespace === '' ? check : { ...check, namespace });
  const somewhere = useCan(namespaced && namespace === '' ? { ...check, namespace: lastNamespace() } : check);
  return useMemo(() => computed(() => everywhere.value === true || (namespace === '' && somewhere.value === true) || (everywhere.value === undefined ? undefined : false)), [everywhere, somewhere, namespace]);
}
