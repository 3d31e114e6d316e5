// Requests to the host. Every failure is a `ProblemError`, whatever went wrong on the way.
import type { Cause, Problem as Told } from '../api/generated';

/** What is wrong, as the server told it or as the page itself found out. */
export interface Problem extends Omit<Told, 'type'> {
  /** Seconds after which to try again. */
  retryAfter?: number;
}

export class ProblemError extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
    this.name = 'ProblemError';
  }
}

/** A problem that the page itself found. */
export function problemOf(status: number, title: string, detail: string): Problem {
  return { title, status, detail, details: detail, causes: [] };
}

/** What is known of anything that was thrown. */
export function asProblem(error: unknown): Problem {
  if (error instanceof ProblemError) return error.problem;
  return problemOf(0, 'Error of the page', error instanceof Error ? error.message : String(error));
}

interface Options {
  contentType?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** What the session adds to requests, and what it wants to be told. */
interface Hooks {
  /** The token that goes with each request; none before somebody has signed in. */
  token: () => string | null;
  /** The caller is not, or no longer, signed in. Resolves to whether the request should be made again. */
  unauthorized: (problem: Problem, sentWith: string | null) => Promise<boolean>;
}

let hooks: Hooks = { token: () => null, unauthorized: () => Promise.resolve(false) };

export function useHooks(given: Hooks): void {
  hooks = given;
}

function isCause(value: unknown): value is Cause {
  return typeof value === 'object' && value !== null && 'field' in value && 'message' in value;
}

/** The problem that an answer tells of, whoever gave it: a proxy in between may speak no JSON. */
export async function readProblem(answer: Response): Promise<Problem> {
  const text = (await answer.text().catch(() => '')).slice(0, 64 * 1024);
  const fallback = problemOf(answer.status, answer.statusText || `Status ${answer.status}`, `The server answered ${answer.status}.`);
  const after = Number(answer.headers.get('retry-after'));
  if (Number.isFinite(after) && after > 0) fallback.retryAfter = after;
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body !== 'object' || body === null) return fallback;
    const told = body as Partial<Problem>;
    const detail = String(told.detail ?? told.details ?? told.title ?? fallback.detail);
    return {
      ...fallback,
      title: String(told.title ?? fallback.title),
      detail,
      details: detail,
      causes: Array.isArray(told.causes) ? told.causes.filter(isCause) : [],
      ...(told.reason ? { reason: String(told.reason) } : {}),
      ...(told.mode === 'local' || told.mode === 'token' ? { mode: told.mode } : {}),
    };
  } catch {
    return fallback;
  }
}

/** One request, with the session's token; asked again once if the user signed in anew. The answer may be of any status. */
export async function request(method: string, path: string, body: BodyInit | null, options: Options = {}): Promise<Response> {
  for (let attempt = 0; ; attempt += 1) {
    const token = hooks.token();
    const headers = new Headers({ accept: 'application/json' });
    if (token) headers.set('authorization', `Bearer ${token}`);
    if (body !== null) headers.set('content-type', options.contentType ?? 'application/json');
    let answer: Response;
    try {
      answer = await fetch(path, { method, headers, body, credentials: 'same-origin', ...(options.signal ? { signal: options.signal } : {}) });
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new ProblemError(problemOf(0, 'The host does not answer', 'The connection to the host failed. Is it still running?'));
    }
    if (answer.status !== 401 || attempt > 0) return answer;
    const problem = await readProblem(answer);
    if (!(await hooks.unauthorized(problem, token))) throw new ProblemError(problem);
  }
}

/** What an answer says, if it is what was asked for. */
export async function readJson<T>(answer: Response): Promise<T> {
  if (!answer.ok) throw new ProblemError(await readProblem(answer));
  if (answer.status === 204) return undefined as T;
  try {
    return (await answer.json()) as T;
  } catch {
    throw new ProblemError(problemOf(answer.status, 'The answer cannot be read', 'The server answered with something that is not JSON.'));
  }
}
