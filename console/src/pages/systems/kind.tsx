// The list of a kind.
import type { PageProps } from '../../lib/router';
import { SystemList } from './list';
import { kindOfParams } from './system';
import { WithSchema } from './with-schema';

export function KindList({ params }: PageProps) {
  return <WithSchema kind={kindOfParams(params)} title={params.plural ?? ''}>{(system, schema) => <SystemList system={system} schema={schema} />}</WithSchema>;
}
