// Every page of the console, by its address below /console.
import type { Route } from './lib/router';
import Dashboard from './pages/systems/dashboard';
import { KindList } from './pages/systems/kind';

const later = () => import('./pages/later');
const KIND = '/kinds/:group/:version/:plural';

export const routes: Route[] = [
  // Where people come first: these are part of what every visit loads.
  { path: '/', title: 'Dashboard', Page: Dashboard },
  { path: KIND, title: ({ plural = '' }) => plural, Page: KindList },
  { path: `${KIND}/new`, title: ({ plural = '' }) => `New of ${plural}`, page: async () => (await later()).New },
  { path: `${KIND}/:namespace/:name`, title: ({ name = '' }) => name, page: async () => (await later()).Detail },
  { path: `${KIND}/:namespace/:name/edit`, title: ({ name = '' }) => `Edit ${name}`, page: async () => (await later()).Edit },
  { path: '/engine', title: 'Overview', page: async () => (await later()).Overview },
  { path: '/engine/reconcilers', title: 'Reconcilers', page: async () => (await later()).ReconcilersPage },
  { path: '/engine/reconcilers/:name', title: ({ name = '' }) => name, page: async () => (await later()).ReconcilerPage },
  { path: '/engine/reconcilers/:name/plan', title: ({ name = '' }) => `Plan a swap of ${name}`, page: async () => (await later()).PlanPage },
  { path: '/engine/modules', title: 'Modules', page: async () => (await later()).ModulesPage },
  { path: '/engine/views', title: 'Views', page: async () => (await later()).ViewsPage },
  { path: '/engine/events', title: 'Events', page: async () => (await later()).EventsPage },
  { path: '/engine/roots/:group/:version/:plural/:namespace/:name', title: ({ name = '' }) => name, page: async () => (await later()).RootPage },
];
