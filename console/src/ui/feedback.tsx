// What stands where there is nothing, not yet anything, or something wrong.
import type { ComponentChildren } from 'preact';
import type { Problem } from '../lib/api';
import { Button } from './button';
import { Icon, type IconName } from './icon';
import { iconOf, type Tone } from './conditions';
import { beginning } from './text';

/** Nothing is here; perhaps a way to change that. */
export function Empty({ title, icon = 'box', children, actions }: { title: string; icon?: IconName | undefined; children?: ComponentChildren; actions?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <strong>{title}</strong>
      {children && <span>{children}</span>}
      {actions && <div class="actions">{actions}</div>}
    </div>
  );
}

interface NoticeProps {
  tone: Tone;
  title?: string | undefined;
  children?: ComponentChildren;
  actions?: ComponentChildren;
  /** Read aloud when it appears. */
  live?: boolean | undefined;
}

/** Something to know before anything else on the page. */
export function Notice({ tone, title, children, actions, live }: NoticeProps) {
  return (
    <div class={`notice tone-${tone}`} role={live ? 'alert' : undefined}>
      <Icon name={iconOf(tone)} />
      <div>
        {title && <strong>{title}</strong>}
        {children}
      </div>
      {actions}
    </div>
  );
}

const MOST_CAUSES = 50;

/** What the server refused, in its own words. */
export function ProblemView({ problem, retry }: { problem: Problem; retry?: (() => void) | undefined }) {
  return (
    <Notice tone="bad" title={problem.title} live actions={retry && <Button small icon="refresh" onClick={retry}>Try again</Button>}>
      <span class="wrap">{beginning(problem.detail)}</span>
      {problem.causes.length > 1 && (
        <ul>
          {problem.causes.slice(0, MOST_CAUSES).map(({ field, message }) => <li key={`${field} ${message}`}>{field && <code>{field}</code>} {beginning(message)}</li>)}
        </ul>
      )}
    </Notice>
  );
}

/** Holds the place of what is being loaded. */
export function Skeleton({ lines = 4, label = 'Loading' }: { lines?: number | undefined; label?: string | undefined }) {
  return (
    <div class="skeleton" role="status" aria-label={label}>
      {Array.from({ length: lines }, (_, line) => <i key={line} />)}
    </div>
  );
}

/** How far something is. */
export function Progress({ done, total, label }: { done: number; total: number; label: string }) {
  const percent = total > 0 ? Math.min(100, Math.round((100 * done) / total)) : 0;
  return (
    <div class="bar" role="progressbar" aria-label={label} aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
      <i style={{ width: `${percent}%` }} />
    </div>
  );
}
