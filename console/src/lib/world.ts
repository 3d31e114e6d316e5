// What the hub uses of the browser.
import { operations } from '../api/generated';
import type { World } from './hub';

export const world: World = {
  fetch(path, token, signal) {
    const headers: Record<string, string> = { accept: path.startsWith(operations.stream.path) ? 'text/event-stream, application/problem+json' : 'application/json' };
    if (token) headers.authorization = `Bearer ${token}`;
    return fetch(path, { headers, signal, credentials: 'same-origin', cache: 'no-store' });
  },
  now: () => Date.now(),
  random: () => Math.random(),
};
