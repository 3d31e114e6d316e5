// Light or dark, or as the system has it. src/head.ts does the same before the first paint.
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'pintle-theme';

function read(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>(typeof localStorage === 'undefined' ? 'system' : read());

export function setTheme(next: Theme): void {
  theme.value = next;
  try {
    if (next === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, next);
  } catch {
    // Where nothing can be kept, it lasts as long as the page.
  }
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}
