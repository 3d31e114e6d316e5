// Which Modules and which kind something is about, told from rows.
import type { Kind, Row } from '../../api/generated';
import type { KindPath } from '../../api/objects';
import { kinds } from '../../lib/kinds';
import type { K8sObject } from '../../lib/kubernetes';

export const MODULE_FIELDS = ['status.manifest.name', 'status.manifest.version', 'status.manifest.reconciles.kind', 'status.manifest.reconciles.apiVersion'];

/** The Modules that could reconcile a kind, and what is chosen in any case; the newest first. */
export function candidates(rows: readonly Row[], kind: { apiVersion: string; kind: string }, chosen: string): Row[] {
  const fits = ({ name, fields }: Row) => name === chosen || (fields['status.manifest.reconciles.kind'] === kind.kind && fields['status.manifest.reconciles.apiVersion'] === kind.apiVersion);
  return rows.filter(fits).sort((one, other) => other.created.localeCompare(one.created));
}

/** The kind at a path; where the kinds may not be listed, what the object says of itself. */
export function kindAt({ group, version, plural }: KindPath, object: K8sObject | null | undefined): Kind {
  const known = kinds.value?.items.find((one) => one.group === group && one.version === version && one.plural === plural);
  return known ?? { group, version, plural, kind: object?.kind ?? plural, namespaced: object ? object.metadata.namespace !== undefined : true, shortNames: [], reconcilers: [], mayList: true };
}
