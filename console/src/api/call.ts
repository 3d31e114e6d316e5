// The client of the console's API: an operation is called by its name. What it takes and answers is typed by the API's description.
import { ProblemError, problemOf, readJson, request } from '../lib/api';
import { type Operations, operations } from './generated';

export type OperationId = keyof Operations;

/** What an operation answers. */
export type Answer<Id extends OperationId> = Operations[Id]['answer'];

/** What an operation whose answer goes on tells, by the names of its events. */
export type EventsOf<Id extends OperationId> = Operations[Id] extends { events: infer Events } ? Events : never;

/** The query of an operation. What is null or empty in it is not sent. */
export type QueryOf<Id extends OperationId> = { [Key in keyof Operations[Id]['query']]?: Operations[Id]['query'][Key] | null | undefined };

/** A part of a request, if the operation takes it. */
type Part<Taken, Given> = [Taken] extends [never] ? object : Given;

/** Where an operation is. */
type Where<Id extends OperationId> = Part<Operations[Id]['path'], { path: Operations[Id]['path'] }> & Part<Operations[Id]['query'], { query?: QueryOf<Id> | undefined }>;

/** What an operation takes besides its path. */
export type Given<Id extends OperationId> = Part<Operations[Id]['query'], { query?: QueryOf<Id> | undefined }> & Part<Operations[Id]['body'], { body: Operations[Id]['body'] }> & { signal?: AbortSignal | undefined };

/** An argument that may be left out where nothing in it is required. */
export type Argument<Type> = object extends Type ? [given?: Type] : [given: Type];

/** A request, whatever the operation. */
interface Request {
  path?: object;
  query?: object | undefined;
  body?: unknown;
  signal?: AbortSignal | undefined;
}

/** The path and the query of any operation: `pathOf` checks them. */
export function address(id: OperationId, { path = {}, query = {} }: Request): string {
  const filled = operations[id].path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String((path as Record<string, unknown>)[name])));
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null && one !== '') asked.append(key, String(one));
  }
  const text = asked.toString();
  return text ? `${filled}?${text}` : filled;
}

/** Beyond it, Kubernetes has no whole numbers: what is larger is a double, as it is here. */
const WHOLE_MAX = 2 ** 64;

/** Where the first number is that may not be the one that was read or typed: JavaScript does not have all whole numbers beyond 2^53. */
export function inexact(value: unknown, path = ''): string | undefined {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < WHOLE_MAX ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  const inside = Array.isArray(value) ? value.map((item, at) => [`${path}[${at}]`, item] as const) : Object.entries(value).map(([key, item]) => [path ? `${path}.${key}` : key, item] as const);
  for (const [at, item] of inside) {
    const found = inexact(item, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A body as JSON. A number that would be stored as another one is refused. */
function written(body: unknown): string {
  const field = inexact(body);
  if (field === undefined) return JSON.stringify(body);
  const message = 'This page cannot write whole numbers beyond 9007199254740991 exactly. Change it with kubectl.';
  throw new ProblemError({ ...problemOf(422, 'A number would be stored as another one', `${field}: ${message}`), causes: [{ field, reason: 'NumberInexact', message }] });
}

/** Begins any operation: `begin` checks what it is given. */
export async function send(id: OperationId, given: Request): Promise<Response> {
  const { method, form }: { method: string; form?: string } = operations[id];
  const { body, signal } = given;
  const raw = body === undefined ? null : body instanceof Blob || body instanceof ArrayBuffer ? body : written(body);
  return request(method, address(id, given), raw, { contentType: form, signal });
}

/** The path and the query of an operation. */
export function pathOf<Id extends OperationId>(id: Id, ...[given]: Argument<Where<Id>>): string {
  return address(id, given ?? {});
}

/** Begins an operation: the answer may be of any status, and may go on. */
export function begin<Id extends OperationId>(id: Id, ...[given]: Argument<Where<Id> & Given<Id>>): Promise<Response> {
  return send(id, given ?? {});
}

/** Calls an operation; throws a `ProblemError` where it does not do what it should. */
export async function call<Id extends OperationId>(id: Id, ...given: Argument<Where<Id> & Given<Id>>): Promise<Answer<Id>> {
  return readJson<Answer<Id>>(await begin(id, ...given));
}
