// Light or dark, or as the system has it. src/head.ts does the same before the first paint.
import { signal } from '@preact/signals';
import { keep, kept } from './kept';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'pintle-theme';

const before = kept(KEY);

export const theme = signal<Theme>(before === 'light' || before === 'dark' ? before : 'system');

export function setTheme(next: Theme): void {
  theme.value = next;
  keep(KEY, next === 'system' ? null : next);
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
}
