// Waits for a kind's schema before a page that needs it is drawn.
import type { ComponentChildren } from 'preact';
import type { KindPath } from '../../api/objects';
import { session } from '../../lib/session';
import { ProblemView, Skeleton } from '../../ui/feedback';
import { Page, PageHead } from '../../ui/layout';
import { type Schema, type System, systemOf, useSchema } from './system';

export function WithSchema({ kind, title, children }: { kind: KindPath; title: string; children: (system: System, schema: Schema) => ComponentChildren }) {
  const { value, problem, retry } = useSchema(kind);
  if (value && session.value) return <>{children(systemOf(value), value)}</>;
  return (
    <Page>
      <PageHead title={title} />
      {problem ? <ProblemView problem={problem} retry={retry} /> : <Skeleton lines={8} />}
    </Page>
  );
}
