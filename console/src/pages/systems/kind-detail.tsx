import type { PageProps } from '../../lib/router';
import { SystemDetail } from './detail';
import { kindOfParams, namespaceOf } from './system';
import { WithSchema } from './with-schema';

export default function KindDetail({ params }: PageProps) {
  return (
    <WithSchema kind={kindOfParams(params)} title={params.name ?? ''}>
      {(system, { schema }) => <SystemDetail system={system} schema={schema} namespace={namespaceOf(params.namespace)} name={params.name ?? ''} />}
    </WithSchema>
  );
}
