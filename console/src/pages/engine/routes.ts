import type { Route } from '../../lib/router';

const later = () => import('../later');

/** The pages of the engine. */
export const engine: Route[] = [
  { path: '/engine', title: 'Overview', page: async () => (await later()).Overview },
  { path: '/engine/reconcilers', title: 'Reconcilers', page: async () => (await later()).ReconcilersPage },
  { path: '/engine/reconcilers/:name', title: ({ name = '' }) => name, page: async () => (await later()).ReconcilerPage },
  { path: '/engine/reconcilers/:name/plan', title: ({ name = '' }) => `Plan a swap of ${name}`, page: async () => (await later()).PlanPage },
  { path: '/engine/modules', title: 'Modules', page: async () => (await later()).ModulesPage },
  { path: '/engine/views', title: 'Views', page: async () => (await later()).ViewsPage },
  { path: '/engine/events', title: 'Events', page: async () => (await later()).EventsPage },
  { path: '/engine/roots/:group/:version/:plural/:namespace/:name', title: ({ name = '' }) => name, page: async () => (await later()).RootPage },
];
