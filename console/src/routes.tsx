// Every page of the console, by its address below /console. The pages of an area stand in the area's own table.
import type { Route } from './lib/router';
import { engine } from './pages/engine/routes';
import { systems } from './pages/systems/routes';

export const routes: Route[] = [...systems, ...engine];
