// Which action keys mean. Pure: no event, no clock.

/** Milliseconds within which the second key of a chord has to follow. */
export const CHORD = 1500;

export interface Pressed {
  /** Keys of an unfinished chord. */
  keys: string[];
  at: number;
}

export interface Bound {
  keys?: string | undefined;
}

/**
 * What a key means after those pressed before: an action to run, or a chord that waits for more. A key that continues no chord begins anew.
 */
export function press<T extends Bound>(before: Pressed, key: string, at: number, actions: T[]): { run: T | null; pressed: Pressed; used: boolean } {
  const none: Pressed = { keys: [], at: 0 };
  const kept = before.keys.length > 0 && at - before.at <= CHORD ? before.keys : [];
  for (const keys of kept.length > 0 ? [[...kept, key], [key]] : [[key]]) {
    const said = keys.join(' ');
    const run = actions.find((action) => action.keys === said);
    if (run) return { run, pressed: none, used: true };
    if (actions.some((action) => action.keys?.startsWith(`${said} `))) return { run: null, pressed: { keys, at }, used: true };
  }
  return { run: null, pressed: none, used: false };
}

/** Whether a palette's entry fits what was typed: all words, in any order, or the first letters. Smaller is better; null does not fit. */
export function fit(title: string, typed: string): number | null {
  const text = title.toLowerCase();
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return 0;
  let score = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return letters(text, words.join(''));
    score += at === 0 ? 0 : /[\s/.-]/.test(text[at - 1] ?? '') ? 1 : 3;
  }
  return score + text.length / 1000;
}

function letters(text: string, typed: string): number | null {
  let at = 0;
  for (const letter of typed) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return null;
  }
  return typed.length > 1 ? 10 + text.length / 1000 : null;
}
