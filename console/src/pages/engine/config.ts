// The config of a Reconciler as it is edited: what a patch has to say, and where a refusal belongs.
import type { Json } from '../../api/generated';
import { isEqual, isObject, mergePatch, parsePath } from '../../forms/path';
import type { JsonSchema, ReconcilerSpec, ReconcilerStatus } from '../../lib/kubernetes';

/** The schema that a module declares for its config, as forms read it. As in a CRD, a keyword that is null counts as absent. */
export function formSchema(schema: Json | undefined): JsonSchema | null {
  return isObject(schema) ? (JSON.parse(JSON.stringify(schema), (_, value: Json) => value ?? undefined) as JsonSchema) : null;
}

/** Nothing, null and an empty object are all no config. */
export function configOf(value: Json | undefined): Json | undefined {
  return value === undefined || value === null || (isObject(value) && Object.keys(value).length === 0) ? undefined : value;
}

/** The patch of a Reconciler that puts a module and a config in force. A config that was not edited is left as it is. */
export function swapPatch(spec: { module: string; config?: Json }, wanted: { module: string; config?: Json; isEdited: boolean }): { spec: { [key: string]: Json } } {
  const patch: { [key: string]: Json } = {};
  if (wanted.module !== spec.module) patch.module = wanted.module;
  if (wanted.isEdited) {
    const [from, to] = [configOf(spec.config), configOf(wanted.config)];
    const change = to === undefined ? (from === undefined ? undefined : null) : mergePatch(from, to);
    if (change !== undefined) patch.config = change as Json;
  }
  return { spec: patch };
}

/** What `pintle swap --undo` puts in force: the module and config before; those in force, where others are wanted. */
export function undoOf({ module, config }: Pick<ReconcilerSpec, 'module' | 'config'>, { active, history = [] }: ReconcilerStatus): { module: string; config?: Json } | undefined {
  if (!active) return undefined;
  const isWanted = active.module === module && isEqual(configOf(active.config), configOf(config));
  // The host keeps the latest first, and never what is in force.
  return isWanted ? history[0] : active;
}

/** The path inside the config of a field that the server names: `spec.config.hosts[0].name`. Null where it is another field. */
export function pathInConfig(field: string): (string | number)[] | null {
  const [first, ...rest] = parsePath(field.replace(/^spec\./, ''));
  return first === 'config' ? rest : null;
}
