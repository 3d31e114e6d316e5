import { SystemList } from './list';
import { sources } from './system';

export default function SourcesList() {
  return <SystemList system={sources} />;
}
