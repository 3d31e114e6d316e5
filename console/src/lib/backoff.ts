// When to try again: later each time, and not when everybody else does.

const FIRST = 1000;
const LAST = 30_000;

/** Milliseconds to wait before attempt number `attempt` (from 0), between half and the whole of a delay that doubles; `random` is in [0, 1). */
export function delay(attempt: number, random: number, atLeast = 0): number {
  const whole = Math.min(LAST, FIRST * 2 ** Math.min(attempt, 16));
  return Math.max(atLeast, Math.round(whole / 2 + (whole / 2) * random));
}
