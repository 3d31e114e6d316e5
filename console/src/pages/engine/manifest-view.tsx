// What is new of what a module declares.
import type { Grants } from '../../lib/kubernetes';
import { Notice } from '../../ui/feedback';
import { Icon } from '../../ui/icon';
import { type Difference, type Manifest, manifestDifferences, notGranted } from './manifest';
import { count } from './words';

const MARKS: Record<Difference['kind'], { icon: 'plus' | 'cross' | 'edit'; tone: string; word: string }> = {
  new: { icon: 'plus', tone: 'ok', word: 'new' },
  gone: { icon: 'cross', tone: 'bad', word: 'gone' },
  other: { icon: 'edit', tone: 'info', word: 'changed' },
};

const ABOUT: Record<string, string> = { children: 'child', needs: 'asks to see', patches: 'patches', config: 'config', reconciles: 'reconciles', evictions: 'evictions', finalizer: 'finalizer', observeStatus: 'status' };

/** The differences of two manifests, a line each. */
function Differences({ items }: { items: readonly Difference[] }) {
  return (
    <ul class="plain differences" role="list">
      {items.map(({ kind, about, what, isRight }) => (
        <li key={`${kind} ${about} ${what}`}>
          <span class={`status tone-${MARKS[kind].tone}`}><Icon name={MARKS[kind].icon} /><span>{MARKS[kind].word}</span></span>
          <span><span class="muted">{ABOUT[about] ?? about}</span> {what}{isRight && <span class="tone-warn"> · needs a grant</span>}</span>
        </li>
      ))}
    </ul>
  );
}

interface ChangesProps {
  before: Manifest | null;
  after: Manifest | null;
  grants: Grants | undefined;
  /** Says so, too, when nothing differs. */
  always?: boolean | undefined;
}

/** What another module declares otherwise than the one in force, and what of it the grants do not allow. */
export function ManifestChanges({ before, after, grants, always }: ChangesProps) {
  if (!after) return null;
  const items = before ? manifestDifferences(before, after) : [];
  const missing = notGranted(after, grants);
  return (
    <>
      {before && items.length === 0 && (always || before.version !== after.version) && <p class="muted small">It declares the same as {before.version}, which is in force.</p>}
      {items.length > 0 && (
        <details class="more" open={items.length < 8}>
          <summary>{count(items.length, 'difference')} to {before?.version}, which is in force</summary>
          <Differences items={items} />
        </details>
      )}
      {missing.length > 0 && (
        <Notice tone="warn" title="Not granted">
          The module declares what this Reconciler does not grant: {missing.join('; ')}. Roots that need it will fail until <code>spec.grants</code> allows it.
        </Notice>
      )}
    </>
  );
}
