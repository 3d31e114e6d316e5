// What would happen to children: a line each, with the difference below it.
import { useState } from 'preact/hooks';
import type { Change, ChildChange, FieldChange, Json } from '../../api/generated';
import { Diff } from '../../ui/diff';
import { Icon, type IconName } from '../../ui/icon';
import type { Tone } from '../../ui/conditions';
import { ObjectName } from './shared';
import { count } from './words';

const CHANGES: Record<Change, { tone: Tone; icon: IconName; word: string }> = {
  create: { tone: 'ok', icon: 'plus', word: 'create' },
  update: { tone: 'info', icon: 'edit', word: 'update' },
  delete: { tone: 'bad', icon: 'trash', word: 'delete' },
  adopt: { tone: 'warn', icon: 'box', word: 'take over' },
  conflict: { tone: 'bad', icon: 'alert', word: 'conflict' },
  unknown: { tone: 'warn', icon: 'help', word: 'unknown' },
  unchanged: { tone: 'muted', icon: 'check', word: 'unchanged' },
};

export function ChangeWord({ change }: { change: Change }) {
  const { tone, icon, word } = CHANGES[change] ?? CHANGES.unknown;
  return (
    <span class={`status tone-${tone} change`}>
      <Icon name={icon} />
      <span>{word}</span>
    </span>
  );
}

/** A value of a field on one line. */
function fieldValue(value: Json | undefined): string {
  if (value === undefined) return 'absent';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/** Single fields and their values before and after. */
export function Fields({ fields }: { fields: readonly FieldChange[] }) {
  if (fields.length === 0) return null;
  return (
    <dl class="fields">
      {fields.slice(0, 50).map(({ path, from, to }, index) => [
        <dt key={index}><code>{path}</code></dt>,
        <dd key={`${index}=`}>
          <span class="from">{fieldValue(from)}</span> <Icon name="arrow" /><span class="sr-only">becomes</span> <span class="to">{fieldValue(to)}</span>
        </dd>,
      ])}
      {fields.length > 50 && <dd class="muted">and {(fields.length - 50).toLocaleString('en')} more</dd>}
    </dl>
  );
}

/** One child, and what would change of it. */
function ChildOf({ child }: { child: ChildChange }) {
  const name = `${child.reference.kind} ${child.reference.name}`;
  return (
    <li class="child-change">
      <div class="head">
        <ChangeWord change={child.change} />
        <ObjectName reference={child.reference} />
      </div>
      {child.why && <p class="muted">{child.why}</p>}
      {child.diff ? <Diff text={child.diff} label={`Differences of ${name}`} /> : <Fields fields={child.fields} />}
    </li>
  );
}

/** The children of a root, those that nothing happens to folded away. */
export function ChildChanges({ items, what = 'child' }: { items: readonly ChildChange[]; what?: string | undefined }) {
  const [all, setAll] = useState(false);
  const quiet = items.filter(({ change, diff }) => change === 'unchanged' && diff === '');
  const shown = all ? items : items.filter((one) => !quiet.includes(one));
  return (
    <>
      <ul class="plain stack" role="list">{shown.map((child) => <ChildOf key={`${child.reference.apiVersion} ${child.reference.kind} ${child.reference.namespace ?? ''}/${child.reference.name}`} child={child} />)}</ul>
      {quiet.length > 0 && (
        <button type="button" class="btn quiet small-btn fold" aria-expanded={all} onClick={() => setAll(!all)}>
          <Icon name={all ? 'up' : 'chevron'} />
          {all ? 'Hide what is unchanged' : `${count(quiet.length, what, what === 'child' ? 'children' : `${what}s`)} unchanged`}
        </button>
      )}
    </>
  );
}
