// The schema of a module's config, as forms read it: JSON Schema says more than the API server's schemas do.
import type { Json } from '../../api/generated';
import { isObject } from '../../forms/path';
import type { JsonSchema } from '../../lib/kubernetes';

type Thing = { [key: string]: Json };

/** Deeper than this no form goes, and a schema that contains itself ends here. */
const DEEPEST = 8;

/** References are put in place, and null is left out of what is allowed. What a form cannot show stays without a type, and is edited as YAML. */
export function formSchema(schema: Json | undefined): JsonSchema | null {
  return isObject(schema) ? (simple(schema, schema, 0) as JsonSchema) : null;
}

function simple(schema: Json | undefined, root: Thing, depth: number): Thing {
  if (!isObject(schema) || depth > DEEPEST) return {};
  const { $ref, $defs, anyOf, allOf, ...own } = schema;
  if (typeof $ref === 'string') return { ...simple(at(root, $ref), root, depth + 1), ...described(own) };
  const choices = Array.isArray(anyOf) ? anyOf.filter((one) => !(isObject(one) && one.type === 'null')) : [];
  if (Array.isArray(anyOf) && choices.length === 1) return { ...simple(choices[0], root, depth + 1), ...described(own) };
  if (Array.isArray(allOf) && allOf.length === 1 && own.type === undefined) return { ...simple(allOf[0], root, depth + 1), ...described(own) };
  if (anyOf !== undefined || allOf !== undefined || own.oneOf !== undefined) return described(own);
  const plain: Thing = { ...own };
  if (Array.isArray(own.type)) {
    const types = own.type.filter((one) => one !== 'null');
    if (types.length === 1 && types[0] !== undefined) plain.type = types[0];
    else delete plain.type;
  }
  if (isObject(own.properties)) plain.properties = Object.fromEntries(Object.entries(own.properties).map(([name, one]) => [name, simple(one, root, depth + 1)]));
  if (isObject(own.items)) plain.items = simple(own.items, root, depth + 1);
  if (isObject(own.additionalProperties)) plain.additionalProperties = simple(own.additionalProperties, root, depth + 1);
  return plain;
}

function described({ description, default: given }: Thing): Thing {
  return { ...(description === undefined ? {} : { description }), ...(given === undefined ? {} : { default: given }) };
}

/** What a reference such as `#/$defs/Image` points to. */
function at(root: Thing, reference: string): Json | undefined {
  if (!reference.startsWith('#/')) return undefined;
  let found: Json | undefined = root;
  for (const part of reference.slice(2).split('/')) found = isObject(found) && Object.hasOwn(found, part) ? found[part] : undefined;
  return found;
}
