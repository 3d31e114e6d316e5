// Whether this browser signed in with a cookie last time: then requests can be made before the host has said who this is.
import type { ModeName } from '../api/generated';

const KEY = 'pintle-signs-in-by-itself';

export function rememberMode(mode: ModeName): void {
  try {
    if (mode === 'local') localStorage.setItem(KEY, 'yes');
    else localStorage.removeItem(KEY);
  } catch {
    // Where nothing can be kept, every visit waits to be told.
  }
}

export function signsInByItself(): boolean {
  try {
    return localStorage.getItem(KEY) === 'yes';
  } catch {
    return false;
  }
}
