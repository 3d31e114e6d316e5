import { signal } from '@preact/signals';

/** Now, for every age on the page: one clock, which stands still while nobody looks. */
export const now = signal(Date.now());

function tick(): void {
  if (!document.hidden) now.value = Date.now();
}

if (typeof window !== 'undefined') {
  setInterval(tick, 5000);
  document.addEventListener('visibilitychange', tick);
}

/** How long something took, or has lasted, as kubectl says it. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 5) return 'now';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  return days < 730 ? `${days}d` : `${Math.floor(days / 365)}y`;
}

/** How long ago something was. The moment itself is its title. */
export function Age({ time, ago }: { time: string | Date | null | undefined; ago?: boolean | undefined }) {
  const date = new Date(time ?? Number.NaN);
  if (Number.isNaN(date.getTime())) return <span class="muted">-</span>;
  const text = duration(now.value - date.getTime());
  return (
    <time class="num nowrap" dateTime={date.toISOString()} title={date.toLocaleString()}>
      {text === 'now' ? 'just now' : ago ? `${text} ago` : text}
    </time>
  );
}
