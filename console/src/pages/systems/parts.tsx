// Small parts that the pages of a system share.
import type { ComponentChildren } from 'preact';
import { computed, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useCan } from '../../lib/can';
import { chooseNamespace, namespaceOfNew } from '../../lib/namespace';
import { navigate } from '../../lib/router';
import { Button, LinkButton, type Variant } from '../../ui/button';
import type { IconName } from '../../ui/icon';
import { Select, TextInput } from '../../ui/inputs';
import { type System, useNamespaces } from './system';

/** Chooses the namespace that lists show. Where namespaces may not be listed, its name is typed. */
export function NamespacePicker({ value }: { value: string }) {
  const namespaces = useNamespaces();
  const [typed, type] = useState(value);
  useEffect(() => type(value), [value]);
  if (namespaces === null) {
    return (
      <form class="toolbar" onSubmit={(event) => {
        event.preventDefault();
        chooseNamespace(typed.trim());
      }}>
        <span class="picker"><TextInput label="Namespace" placeholder="Namespace" value={typed} onInput={type} /></span>
        <Button type="submit">Show</Button>
      </form>
    );
  }
  const names = namespaces ?? [];
  const options = [{ value: '', label: 'All namespaces' }, ...(value !== '' && !names.includes(value) ? [value] : []).concat(names).map((name) => ({ value: name, label: name }))];
  return <span class="picker"><Select label="Namespace" value={value} options={options} onChange={chooseNamespace} /></span>;
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
  const somewhere = useCan(namespaced && namespace === '' ? { ...check, namespace: namespaceOfNew() } : check);
  return useMemo(() => computed(() => everywhere.value === true || (namespace === '' && somewhere.value === true) || (everywhere.value === undefined ? undefined : false)), [everywhere, somewhere, namespace]);
}
