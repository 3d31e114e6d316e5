// The pages of one object: they share a chunk, because the form is most of it.
import type { PageProps } from '../../lib/router';
import { SystemDetail } from './detail';
import { SystemEdit, SystemNew } from './edit';
import { kindOfParams, namespaceOf } from './system';
import { WithSchema } from './with-schema';

export function Detail({ params }: PageProps) {
  const at = { namespace: namespaceOf(params.namespace), name: params.name ?? '' };
  return <WithSchema kind={kindOfParams(params)} title={at.name}>{(system, schema) => <SystemDetail system={system} schema={schema} {...at} />}</WithSchema>;
}

export function New({ params }: PageProps) {
  return <WithSchema kind={kindOfParams(params)} title="New">{(system, schema) => <SystemNew system={system} schema={schema} />}</WithSchema>;
}

export function Edit({ params }: PageProps) {
  return (
    <WithSchema kind={kindOfParams(params)} title={`Edit ${params.name}`}>
      {(system, schema) => <SystemEdit system={system} schema={schema} namespace={namespaceOf(params.namespace)} name={params.name ?? ''} />}
    </WithSchema>
  );
}
