// The pages with a form: they share a chunk, because the form is most of it.
import type { PageProps } from '../../lib/router';
import { SystemEdit, SystemNew } from './edit';
import { kindOfParams, namespaceOf } from './system';
import { WithSchema } from './with-schema';

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
