import type { Json } from '../../api/generated';
import { isObject } from '../../forms/path';
import { YamlView } from '../../ui/yaml';
import { configOf } from './config';

/** A config in a line where it is short, else as YAML. */
export function Config({ value }: { value: Json | undefined }) {
  if (configOf(value) === undefined) return <span class="muted">none</span>;
  if (isObject(value) && Object.values(value).every((one) => typeof one !== 'object')) {
    return <>{Object.entries(value).slice(0, 6).map(([key, one]) => <div key={key}><span class="muted">{key}:</span> <span class="mono">{String(one)}</span></div>)}</>;
  }
  return <YamlView value={value} label="Config" max="200px" />;
}
