// A config as a form, made from the schema that its module declares.
import type { Json } from '../../api/generated';
import type { Fault } from '../../forms/faults';
import { FieldView } from '../../forms/fields';
import { membersOf, shownFields } from '../../forms/model';
import { get, isObject, isSame, isWithin, set, unset } from '../../forms/path';
import type { FieldForm } from '../../forms/use-form';
import type { JsonSchema } from '../../lib/kubernetes';

interface ConfigFormProps {
  schema: JsonSchema;
  value: Json | undefined;
  onChange: (value: Json) => void;
  faults: readonly Fault[];
}

export function ConfigForm({ schema, value, onChange, faults }: ConfigFormProps) {
  const thing = isObject(value) ? value : {};
  const form: FieldForm = {
    at: (path) => get(thing, path),
    set: (path, to) => onChange((to === undefined ? unset(thing, path) : set(thing, path, to)) as Json),
    blur: () => undefined,
    error: (path, inside) => faults.find((fault) => (inside ? isWithin(fault.path, path) : isSame(fault.path, path)))?.message,
    faultsIn: (path) => faults.filter((fault) => isWithin(fault.path, path)),
    unreadable: () => undefined,
  };
  return <div class="stack">{shownFields(membersOf(schema, [], 0), thing).map((node) => <FieldView key={node.key} form={form} node={node} />)}</div>;
}
