// Short news at the edge of the page. Errors stay until somebody takes them away.
import { signal } from '@preact/signals';
import { asProblem } from '../lib/api';
import type { Tone } from './conditions';

export interface News {
  id: number;
  message: string;
  tone: Tone;
}

const LASTS = 5000;
const MOST = 4;
let last = 0;

export const news = signal<News[]>([]);

export function dismiss(id: number): void {
  news.value = news.value.filter((one) => one.id !== id);
}

/** Tells something that was done, or went wrong. */
export function toast(message: string, tone: Tone = 'ok'): void {
  last += 1;
  const id = last;
  news.value = [...news.value.slice(1 - MOST), { id, message, tone }];
  if (tone !== 'bad') setTimeout(() => dismiss(id), LASTS);
}

/** Tells why something was not done. */
export function toastProblem(error: unknown): void {
  toast(asProblem(error).detail, 'bad');
}
