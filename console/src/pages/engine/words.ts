// What conditions, sizes, digests and grants are called. Values in, words out.
import type { Failure } from '../../api/generated';
import type { Problem } from '../../lib/api';
import type { Grants, ViewSpec } from '../../lib/kubernetes';

/** The few hexadecimal digits of a digest that people compare. */
export const shortDigest = (digest = ''): string => digest.replace(/^sha256:/, '').slice(0, 12);

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB'] as const;

export function bytes(size: number): string {
  let value = size;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${UNITS[unit]}`;
}

/** `1 root`, `2 roots`, `10,000 roots`. */
export function count(many: number, one: string, more = `${one}s`): string {
  return `${many.toLocaleString('en')} ${many === 1 ? one : more}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function enumeration(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? '') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

/** `apps/v1` is of the group `apps`, `v1` of none. */
export function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
}

/** The child that a blocker's message names, if it names one: `Deployment shop-images: 0 of 1 replicas are ready`. */
export function isNamedBy(message: string, { kind, name, namespace }: { kind: string; name: string; namespace: string | null }): boolean {
  const written = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const place = namespace ? `(${written(namespace)}/)?` : '';
  return new RegExp(`(^|[^\\w./-])${written(kind)}[ /]${place}${written(name)}(?![\\w/-]|\\.\\w)`, 'i').test(message);
}

/** A failure in one line, its path first. */
export function failureWords({ reason, message, path }: Failure): string {
  return `${path ? `${path}: ` : ''}${message || reason}`;
}

/** In whose name the backing kind of a View is read and written. */
export function whoReads({ access }: Pick<ViewSpec, 'access'>): string {
  return access === 'View' ? 'the gateway' : 'the caller';
}

/** A grant as a line: what, and where. */
export interface GrantLine {
  what: string;
  kinds: string[];
  where: string;
}

/** What a Reconciler's grants allow, a line each, in words. */
export function grantLines(grants: Grants | undefined): GrantLine[] {
  const lines: GrantLine[] = [];
  const named = (apiVersion: string, kinds: readonly string[]) => kinds.map((kind) => (groupOf(apiVersion) ? `${kind} (${apiVersion})` : kind));
  for (const one of grants?.children ?? []) lines.push({ what: 'May create', kinds: named(one.apiVersion, one.kinds), where: one.namespaces?.length ? `in ${enumeration(one.namespaces)}` : "in the root's namespace" });
  for (const one of grants?.needs ?? []) lines.push({ what: 'May see', kinds: named(one.apiVersion, one.kinds), where: `${one.scope === 'All' ? 'in all namespaces' : "in the root's namespace"}${one.names?.length ? `, named ${enumeration(one.names)}` : ''}` });
  for (const one of grants?.patches ?? []) lines.push({ what: 'May patch', kinds: named(one.apiVersion, [one.kind]), where: `${enumeration(one.fields ?? [])}${one.force ? ', also where somebody else set it' : ''}` });
  if (grants?.evictions) lines.push({ what: 'May evict', kinds: ['Pod'], where: 'respecting disruption budgets' });
  if (grants?.podDeletions) lines.push({ what: 'May delete', kinds: ['Pod'], where: 'where an eviction is not possible' });
  for (const one of grants?.podTemplates?.references ?? []) lines.push({ what: 'Pods may use', kinds: [one.kind], where: one.fromRoot ? `that ${one.fromRoot} of the root names` : `named ${one.name ?? ''}` });
  if (grants?.podTemplates?.allow?.length) lines.push({ what: 'Pods may have', kinds: grants.podTemplates.allow, where: 'against the baseline' });
  if (grants?.services?.types?.length) lines.push({ what: 'Services may be', kinds: grants.services.types, where: grants.services.externalIps ? 'with external IPs' : '' });
  if (grants?.ingressAnnotations?.length) lines.push({ what: 'Ingresses may carry', kinds: grants.ingressAnnotations, where: '' });
  return lines;
}

/** What to do about bytes that the engine refused, by its reason. */
const REFUSED: Record<string, string> = {
  NotWasm: 'This file is not WebAssembly. Upload the .wasm file that `pintle build` writes.',
  CoreModule: 'This is a core WebAssembly module, and a guest is a component. Build it with `pintle build`.',
  ImportsNotAllowed: 'A guest imports nothing, not even WASI. Build it with `pintle build`, which builds for wasm32-unknown-unknown.',
  InvalidWasm: 'The bytes are damaged, or use a feature of WebAssembly that guests may not use. Build it with `pintle build`.',
  MissingExport: 'The component is no guest of this host’s contract. Build it with the SDK that fits this host.',
  WrongExportType: 'The component was built for another version of the contract. Build it with the SDK that fits this host.',
  ModuleTooLarge: 'Make the module smaller: build it for release, with fewer dependencies.',
  CompileTooExpensive: 'Compiling it takes more than this host grants. Make its functions smaller.',
  CompilerFailed: 'It was not compiled this time. Try again.',
  ManifestTooLarge: 'Its manifest declares more than a host takes. Split the guest in two.',
  ConfigSchemaInvalid: 'The schema of its config is none that this host takes. Mend the guest’s config type.',
  AlreadyExists: 'A Module never changes. Choose another name, such as the next version.',
};

/** What helps against a refused upload; nothing where nobody knows more than the message says. */
export function uploadHelp({ reason, status }: Problem): string | null {
  if (reason && REFUSED[reason]) return REFUSED[reason];
  if (status === 413) return REFUSED.ModuleTooLarge ?? null;
  if (status === 403) return 'You lack a right in this cluster. Creating a Module needs create on modules.pintle.dev, and on ConfigMaps in pintle-system.';
  return null;
}

/** A name for a Module from that of a file: `darkroom-0.2.0.wasm`. */
export function nameFromFile(file: string, manifest?: { name: string; version: string } | null): string {
  if (manifest) return clean(`${manifest.name}-${manifest.version}`);
  return clean(file.replace(/^.*[\\/]/, '').replace(/\.(component\.)?wasm$/i, ''));
}

function clean(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9.-]+/g, '-').replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '').slice(0, 253);
}

/** What is wrong with the name of an object, if anything is. */
export function nameProblem(name: string): string | null {
  if (name === '') return 'A Module needs a name.';
  if (name.length > 253) return 'At most 253 characters.';
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) ? null : 'Lower-case letters, digits, - and . only; the first and last a letter or digit.';
}
