// The pages of a kind that show it; those of the sources have no need of its schema.
import type { PageProps } from '../../lib/router';
import { SystemDetail } from './detail';
import { SystemList } from './list';
import { kindOfParams, namespaceOf, sources } from './system';
import { WithSchema } from './with-schema';

export function KindList({ params }: PageProps) {
  return <WithSchema kind={kindOfParams(params)} title={params.plural ?? ''}>{(system, { schema }) => <SystemList system={system} schema={schema} />}</WithSchema>;
}

export function Detail({ params }: PageProps) {
  const at = { namespace: namespaceOf(params.namespace), name: params.name ?? '' };
  if (params.group === undefined) return <SystemDetail system={sources} {...at} />;
  return <WithSchema kind={kindOfParams(params)} title={at.name}>{(system, { schema }) => <SystemDetail system={system} schema={schema} {...at} />}</WithSchema>;
}
