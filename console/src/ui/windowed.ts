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

/** The nearest ancestor that scrolls; none where the window does. */
function scrollerOf(element: Element): Element | null {
  for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(at).overflowY)) return at;
  }
  return null;
}

/** The rows of a list to draw, while the window or an ancestor of the list scrolls. */
export function useWindowed(ref: RefObject<HTMLElement | null>, count: number, height: number): Range {
  const [range, setRange] = useState<Range>(() => rangeOf(0, window.innerHeight, height, count));
  const measure = useCallback(() => {
    const element = ref.current;
    if (!element) return;
    const scroller = scrollerOf(element);
    const box = scroller?.getBoundingClientRect();
    const from = box?.top ?? 0;
    const to = box ? box.bottom : window.innerHeight;
    const top = element.getBoundingClientRect().top;
    const next = rangeOf(from - top, to - top, height, count);
    setRange((before) => (before.first === next.first && before.end === next.end ? before : next));
  }, [count, height]);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const target: Element | Window = scrollerOf(element) ?? window;
    let asked = 0;
    const ask = () => {
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(measure);
    };
    // What is drawn first is the beginning of the list. To measure before that is drawn would lay out the page twice.
    ask();
    target.addEventListener('scroll', ask, { passive: true });
    window.addEventListener('resize', ask);
    return () => {
      cancelAnimationFrame(asked);
      target.removeEventListener('scroll', ask);
      window.removeEventListener('resize', ask);
    };
  }, [measure]);
  return range.end > count ? rangeOf(range.first * height, count * height, height, count) : range;
}
