// What several of the engine's pages show.
import type { ComponentChildren } from 'preact';
import type { Json, ObjectRef } from '../../api/generated';
import type { Rows } from '../../lib/store';
import { Age } from '../../ui/age';
import { Empty, Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { modulePage } from './paths';
import { shortDigest } from './words';

/** A sentence in which what stands between backticks is code. */
export function Words({ text }: { text: string }) {
  return <>{text.split('`').map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

/** A Module by its name, with the few digits of its digest that tell it apart. */
export function ModuleRef({ name, digest }: { name: string | undefined; digest?: string | undefined }) {
  if (!name) return <span class="muted">none</span>;
  return (
    <span class="module-ref">
      <a href={modulePage(name)}>{name}</a>
      {digest && <code title={digest}>{shortDigest(digest)}</code>}
    </span>
  );
}

export function Tags({ items, empty = 'none' }: { items: readonly string[]; empty?: string | undefined }) {
  if (items.length === 0) return <span class="muted">{empty}</span>;
  return <span class="tags">{items.map((item) => <span class="tag" key={item}>{item}</span>)}</span>;
}

/** An object as a name: its kind, and where it is. */
export function ObjectName({ reference, href }: { reference: Pick<ObjectRef, 'kind' | 'namespace' | 'name'>; href?: string | undefined }) {
  const { kind, namespace, name } = reference;
  const shown = <>{namespace && <span class="muted">{namespace}/</span>}{name}</>;
  return (
    <span class="object-name">
      <span class="tag">{kind}</span>
      {href ? <a href={href}>{shown}</a> : <span>{shown}</span>}
    </span>
  );
}

/** A list with whatever is to be said about it: it is being loaded, it cannot be had, it is empty. */
export function Listed({ list, empty, children }: { list: Rows; empty: ComponentChildren; children: () => ComponentChildren }) {
  const { rows, state, problem, since } = list;
  const isEmpty = rows.value.length === 0;
  if (state.value === 'loading' && isEmpty) return <Skeleton lines={6} />;
  return (
    <>
      {state.value === 'failed' && problem.value && <ProblemView problem={problem.value} />}
      {state.value === 'stale' && <Notice tone="warn">The connection is interrupted. What is shown is as it was <Age time={since.value} ago />.</Notice>}
      {!isEmpty ? children() : state.value !== 'failed' && empty}
    </>
  );
}

/** What stands in place of an object that is not there, or cannot be read. */
export function Missing({ what, name, back }: { what: string; name: string; back: ComponentChildren }) {
  return <Empty title={`There is no ${what} ${name}`} icon="search" actions={back}>It may have been deleted, or never have been.</Empty>;
}

/** A field of a row, as what it should be; undefined where it is not. */
export function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function number(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

export function texts(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}
