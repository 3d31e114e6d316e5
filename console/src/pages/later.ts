// The pages that a first visit does not load. They are one file of dist/.
export { EventsPage } from './engine/events';
export { ModulesPage } from './engine/modules';
export { Overview } from './engine/overview';
export { PlanPage } from './engine/plan';
export { ReconcilerPage } from './engine/reconciler';
export { ReconcilersPage } from './engine/reconcilers';
export { RootPage } from './engine/root';
export { ViewsPage } from './engine/views';
export { Detail, Edit, New } from './systems/forms';
