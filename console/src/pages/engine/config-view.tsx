import type { Json } from '../../api/generated';
import { YamlView } from '../../ui/yaml';

/** A config in a line where it is short, else as YAML. */
export function Config({ value }: { value: Json | undefined }) {
  if (value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)) return <span class="muted">none</span>;
  if (typeof value === 'object' && !Array.isArray(value) && Object.values(value).every((one) => typeof one !== 'object')) {
    return <>{Object.entries(value).slice(0, 6).map(([key, one]) => <div key={key}><span class="muted">{key}:</span> <span class="mono">{String(one)}</span></div>)}</>;
  }
  return <YamlView value={value} label="Config" max="200px" />;
}
