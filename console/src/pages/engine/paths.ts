// The addresses of the engine's pages.

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

/** The page that plans to make the module before active again. */
export function undoPage(name: string): string {
  return `${reconcilerPage(name)}/plan?undo=true`;
}

export function modulePage(name: string): string {
  return `${MODULES_PAGE}?name=${part(name)}`;
}

/** Who uses a Module is told as the name of a Reconciler, or as `view/` and the name of a View. */
export function userPage(user: string): string {
  return user.startsWith('view/') ? VIEWS_PAGE : reconcilerPage(user);
}
