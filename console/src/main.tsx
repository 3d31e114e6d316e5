import { open } from './console';

await open();
