import type { Route } from '../../lib/router';
import { rowsAhead } from '../../lib/store';
import { DARKROOM_FIELDS } from './columns';
import Dashboard from './dashboard';
import { SystemList } from './list';
import { sources } from './system';

const later = () => import('../later');
const KIND = '/kinds/:group/:version/:plural';

/** The pages of the systems. */
export const systems: Route[] = [
  // Where people come first: these are part of what every visit loads.
  { path: '/', title: 'Dashboard · Darkroom', Page: Dashboard },
  { path: '/sources', title: 'All Sources · Darkroom', Page: () => <SystemList system={sources} />, ahead: () => rowsAhead(sources, { fields: DARKROOM_FIELDS }) },
  { path: '/sources/new', title: 'New Source · Darkroom', page: async () => (await later()).New },
  { path: '/sources/:namespace/:name', title: ({ name = '' }) => `${name} · Darkroom`, page: async () => (await later()).Detail },
  { path: '/sources/:namespace/:name/edit', title: ({ name = '' }) => `Edit ${name} · Darkroom`, page: async () => (await later()).Edit },
  { path: KIND, title: ({ plural = '' }) => plural, page: async () => (await later()).KindList },
  { path: `${KIND}/new`, title: ({ plural = '' }) => `New of ${plural}`, page: async () => (await later()).New },
  { path: `${KIND}/:namespace/:name`, title: ({ name = '' }) => name, page: async () => (await later()).Detail },
  { path: `${KIND}/:namespace/:name/edit`, title: ({ name = '' }) => `Edit ${name}`, page: async () => (await later()).Edit },
];
