// Which of many rows are worth drawing: those on the screen, and a few around it.
import { type RefObject } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';

export interface Range {
  first: number;
  /** The one after the last. */
  end: number;
}

const AROUND = 8;

/** The rows between two heights, measured from the first row's top. */
export function rangeOf(top: number, bottom: number, height: number, count: number): Range {
  const first = Math.max(0, Math.min(count, Math.floor(top / height) - AROUND));
  const end = Math.max(first, Math.min(count, Math.ceil(bottom / height) + AROUND));
  return { first, end };
}

/** The rows of a list to draw, while the window scrolls. */
export function useWindowed(ref: RefObject<HTMLElement | null>, count: number, height: number): Range {
  const [range, setRange] = useState<Range>(() => rangeOf(0, window.innerHeight, height, count));
  const measure = useCallback(() => {
    const top = ref.current?.getBoundingClientRect().top;
    if (top === undefined) return;
    const next = rangeOf(-top, window.innerHeight - top, height, count);
    setRange((before) => (before.first === next.first && before.end === next.end ? before : next));
  }, [count, height]);
  useEffect(() => {
    const stop = new AbortController();
    let asked = 0;
    const ask = () => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(measure);
    };
    // What is drawn first is the beginning of the list. To measure before that is drawn would lay out the page twice.
    ask();
    window.addEventListener('scroll', ask, { passive: true, signal: stop.signal });
    window.addEventListener('resize', ask, { signal: stop.signal });
    return () => {
      cancelAnimationFrame(asked);
      stop.abort();
    };
  }, [measure]);
  return range.end > count ? rangeOf(range.first * height, count * height, height, count) : range;
}
