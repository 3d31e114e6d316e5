// Paths into an object, as Kubernetes writes them: spec.source.baseUrl, spec.subDomains[0], metadata.labels[a.b/c].

export type Path = readonly (string | number)[];

/** Nobody reads deeper, whatever a server says. */
const DEEPEST = 64;

const isIndex = (part: string): boolean => /^(0|[1-9]\d{0,8})$/.test(part);

/** Reads a path of a server's answer. Brackets hold an index, or a key of a map. */
export function parsePath(text: string): Path {
  const parts: (string | number)[] = [];
  // What the API server says of a rule about the whole object.
  if (text === '<nil>') return parts;
  let at = text.startsWith('$.') ? 2 : text.startsWith('.') ? 1 : 0;
  while (at < text.length && parts.length < DEEPEST) {
    if (text[at] === '[') {
      const end = text.indexOf(']', at);
      const inside = text.slice(at + 1, end < 0 ? undefined : end).replace(/^(["'])(.*)\1$/, '$2');
      parts.push(isIndex(inside) ? Number(inside) : inside);
      at = end < 0 ? text.length : end + 1;
    } else {
      const rest = text.slice(at);
      const end = rest.search(/[.[]/);
      const part = end < 0 ? rest : rest.slice(0, end);
      if (part !== '') parts.push(part);
      at += part.length + (rest[end] === '.' || part === '' ? 1 : 0);
    }
  }
  return parts;
}

/** Writes a path so that `parsePath` reads it again. */
export function pathText(path: Path): string {
  return path.map((part, at) => (typeof part === 'number' ? `[${part}]` : /[.[\]/]/.test(part) || isIndex(part) ? `[${part}]` : at === 0 ? part : `.${part}`)).join('');
}

export const isWithin = (path: Path, around: Path): boolean => around.length <= path.length && around.every((part, at) => String(part) === String(path[at]));

export const isSame = (one: Path, other: Path): boolean => one.length === other.length && isWithin(one, other);

export const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** What stands at a path; undefined when nothing does. */
export function get(value: unknown, path: Path): unknown {
  let at: unknown = value;
  for (const part of path) {
    if (Array.isArray(at)) at = at[Number(part)] as unknown;
    else if (isObject(at) && Object.hasOwn(at, part)) at = at[part];
    else return undefined;
  }
  return at;
}

/** The same value with something else at a path. What is around it is made where it is missing; nothing that was given is changed. */
export function set(value: unknown, path: Path, to: unknown): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return to;
  if (typeof part === 'number') {
    const list = Array.isArray(value) ? [...(value as unknown[])] : [];
    list[part] = set(list[part], rest, to);
    return list;
  }
  const copy: Record<string, unknown> = isObject(value) ? { ...value } : {};
  const inner = set(Object.hasOwn(copy, part) ? copy[part] : undefined, rest, to);
  if (inner === undefined) delete copy[part];
  else Object.defineProperty(copy, part, { value: inner, enumerable: true, configurable: true, writable: true });
  return copy;
}

/** The same value without what stands at a path, and without what is empty around it because of that; the first `keep` parts of the path stay. */
export function unset(value: unknown, path: Path, keep = 1): unknown {
  if (get(value, path) === undefined) return value;
  const last = path.at(-1);
  const parent = path.slice(0, -1);
  if (typeof last === 'number') return set(value, parent, (get(value, parent) as unknown[]).filter((_, at) => at !== last));
  const without = set(value, path, undefined);
  const left = get(without, parent);
  return parent.length > keep && typeof parent.at(-1) === 'string' && isObject(left) && Object.keys(left).length === 0 ? unset(without, parent, keep) : without;
}

export function isEqual(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((item, at) => isEqual(item, other[at]));
  if (!isObject(one) || !isObject(other)) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && isEqual(one[key], other[key]));
}

/** The merge patch (RFC 7396) that makes one value of another; undefined when they are equal. */
export function mergePatch(from: unknown, to: unknown): unknown {
  if (isEqual(from, to)) return undefined;
  if (!isObject(from) || !isObject(to)) return to;
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    if (!Object.hasOwn(to, key)) patch[key] = null;
    else if (!Object.hasOwn(from, key)) patch[key] = to[key];
    else {
      const inner = mergePatch(from[key], to[key]);
      if (inner !== undefined) patch[key] = inner;
    }
  }
  return patch;
}
