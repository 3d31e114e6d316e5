// The kinds by what they are called in addresses, and the pages of their objects.
import type { KindPath } from '../api/objects';

const part = encodeURIComponent;

const kindPart = ({ group, version, plural }: KindPath): string => `${part(group)}/${part(version)}/${part(plural)}`;

/** `-` stands for no namespace. */
const objectPart = (namespace: string | null | undefined, name: string): string => `${part(namespace ?? '-')}/${part(name)}`;

/** The page that lists the objects of a kind. */
export function homeOf(kind: KindPath): string {
  return `/console/kinds/${kindPart(kind)}`;
}

/** The page of an object, where its users see and edit it. */
export function pageOf(kind: KindPath, namespace: string | null | undefined, name: string): string {
  return `${homeOf(kind)}/${objectPart(namespace, name)}`;
}

/** The page on which the engine shows the same object. */
export function rootPage(kind: KindPath, namespace: string | null | undefined, name: string): string {
  return `/console/engine/roots/${kindPart(kind)}/${objectPart(namespace, name)}`;
}
