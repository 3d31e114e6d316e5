// The addresses of the engine's pages.
import type { Kind } from '../../api/generated';
import type { KindPath } from '../../api/objects';

const part = encodeURIComponent;

export const RECONCILERS_PAGE = '/console/engine/reconcilers';
const MODULES_PAGE = '/console/engine/modules';
export const VIEWS_PAGE = '/console/engine/views';
export const ENGINE_PAGE = '/console/engine';

export function reconcilerPage(name: string): string {
  return `${RECONCILERS_PAGE}/${part(name)}`;
}

/** The page that plans a swap; with the module chosen already, if there is one. */
export function planPage(name: string, module?: string): string {
  return `${reconcilerPage(name)}/plan${module === undefined ? '' : `?module=${part(module)}`}`;
}

export function modulePage(name: string): string {
  return `${MODULES_PAGE}?name=${part(name)}`;
}

export function rootPage({ group, version, plural }: KindPath, namespace: string | null | undefined, name: string): string {
  return `${ENGINE_PAGE}/roots/${part(group)}/${part(version)}/${part(plural)}/${namespace ? part(namespace) : '-'}/${part(name)}`;
}

/** Who uses a Module is told as the name of a Reconciler, or as `view/` and the name of a View. */
export function userPage(user: string): string {
  return user.startsWith('view/') ? VIEWS_PAGE : reconcilerPage(user);
}

/** The page of an object where its users see and edit it: that of a source for what is served as `/darkrooms`, else that of its kind. */
export function systemPage({ group, version, plural, rest }: Kind, namespace: string | null, name: string): string {
  const object = `${namespace ? part(namespace) : '-'}/${part(name)}`;
  return rest === '/darkrooms' ? `/console/sources/${object}` : `/console/kinds/${part(group)}/${part(version)}/${part(plural)}/${object}`;
}
