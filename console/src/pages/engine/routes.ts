import type { Route } from '../../lib/router';

/** The pages of the engine. */
export const engine: Route[] = [
  { path: '/engine', title: 'Overview', page: () => import('./overview') },
  { path: '/engine/reconcilers', title: 'Reconcilers', page: () => import('./reconcilers') },
  { path: '/engine/reconcilers/:name', title: ({ name = '' }) => name, page: () => import('./reconciler') },
  { path: '/engine/reconcilers/:name/plan', title: ({ name = '' }) => `Plan a swap of ${name}`, page: () => import('./plan') },
  { path: '/engine/modules', title: 'Modules', page: () => import('./modules') },
  { path: '/engine/views', title: 'Views', page: () => import('./views') },
  { path: '/engine/events', title: 'Events', page: () => import('./events') },
  { path: '/engine/roots/:group/:version/:plural/:namespace/:name', title: ({ name = '' }) => name, page: () => import('./root') },
];
