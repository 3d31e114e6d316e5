import type { PageProps } from '../../lib/router';
import { SystemDetail } from './detail';
import { namespaceOf, sources } from './system';

export default function Source({ params }: PageProps) {
  return <SystemDetail system={sources} namespace={namespaceOf(params.namespace)} name={params.name ?? ''} />;
}
