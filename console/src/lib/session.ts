// Who is signed in, and how: by a token. In local mode it is the secret in the console's address, which each tab keeps for itself; in token mode
// it is one of the cluster, which only the memory of the open tabs holds.
import { signal } from '@preact/signals';
import { pathOf } from '../api/call';
import type { ModeName, Session } from '../api/generated';
import { answered, begins, fetchAhead, keepAhead, keepToken, keptToken, signsInByItself } from './ahead';
import { asProblem, type Problem, readProblem, useHooks } from './api';
import { post, startStream } from './stream';

export type SignIn =
  | { state: 'starting' }
  /** Nobody has signed in yet. */
  | { state: 'out'; mode: ModeName; problem: Problem | null }
  | { state: 'in' }
  /** The host cannot be asked at all. */
  | { state: 'failed'; problem: Problem };

export const session = signal<Session | null>(null);
export const signIn = signal<SignIn>({ state: 'starting' });
/** Set while the login that worked until now no longer does: the page stays, and a dialog asks once. */
export const expired = signal<{ problem: Problem; isAsking: boolean } | null>(null);

let token: string | null = null;
/** What stood in the address. */
let secret: string | null = null;
let waiting: ((again: boolean) => void)[] = [];

/** A token may be pasted with the word before it, with quotes or with line breaks in it; a secret with the address before it. */
export function cleanToken(text: string): string {
  return text.trim().replace(/^Bearer\s+/i, '').replace(/^["']|["']$/g, '').replace(/\s+/g, '').replace(/^.*#/, '');
}

/** What the fragment of the address holds: the secret of `pintle console`, if it looks like one. */
export function secretOf(fragment: string): string | null {
  const found = /^#([A-Za-z0-9_-]{16,128})$/.exec(fragment);
  return found?.[1] ?? null;
}

/** Takes the secret out of the address: nothing else is to see it, and it is in no history. */
function takeSecret(): string | null {
  const found = secretOf(location.hash);
  if (found) history.replaceState(history.state, '', location.pathname + location.search);
  return found;
}

async function ask(candidate: string | null): Promise<Session | Problem> {
  const path = pathOf('getSession');
  const headers = { accept: 'application/json', authorization: `Bearer ${candidate}` };
  const answer = await (candidate === keptToken() ? fetchAhead(path) : fetch(path, { headers, credentials: 'same-origin' }));
  return answer.ok ? ((await answer.json()) as Session) : readProblem(answer);
}

function isProblem(answer: Session | Problem): answer is Problem {
  return 'status' in answer;
}

function accept(given: Session): void {
  session.value = given;
  if (given.mode === 'local' && token) keepToken(token);
  keepAhead(given.mode === 'local');
  signIn.value = { state: 'in' };
  expired.value = null;
  for (const resolve of waiting.splice(0)) resolve(true);
}

let started = false;
let firstToken: ((token: string | null) => void) | null = null;
/** The token that another tab has, if one has any. */
const othersToken = new Promise<string | null>((resolve) => (firstToken = resolve));

function listen(): void {
  if (started) return;
  started = true;
  startStream({ token: () => token, onToken: otherTab, onUnauthorized: (problem, sentWith) => void unauthorized(problem, sentWith) });
}

/** Another tab has signed in, or out. */
function otherTab(given: string | null): void {
  firstToken?.(given);
  if (given === token) return;
  token = given;
  if (given === null) {
    session.value = null;
    signIn.value = { state: 'out', mode: 'token', problem: null };
    return;
  }
  void ask(given).then((answer) => {
    if (!isProblem(answer) && token === given) accept(answer);
  }, () => undefined);
}

/** Asks for a login once, however many requests found out that there is none; resolves to whether they are worth making again. */
function unauthorized(problem: Problem, sentWith: string | null): Promise<boolean> {
  if (sentWith !== token) return Promise.resolve(true);
  keepToken(null);
  if (expired.value && !expired.value.isAsking) return Promise.resolve(false);
  expired.value = { problem, isAsking: true };
  return new Promise((resolve) => waiting.push(resolve));
}

/** The dialog was closed without signing in: what waits fails, and nothing asks again until the user does. */
export function later(): void {
  if (expired.value) expired.value = { ...expired.value, isAsking: false };
  for (const resolve of waiting.splice(0)) resolve(false);
}

export function askAgain(): void {
  if (expired.value) expired.value = { ...expired.value, isAsking: true };
}

/** Asks who this is: whoever has the secret that stood in the address, or else what this tab keeps. */
async function enter(): Promise<Session | Problem> {
  if (!secret) return ask(token);
  const answer = await ask(secret);
  if (isProblem(answer) && answer.status !== 401) return answer;
  // A link signs nobody in to a cluster: it could be with the token of somebody else.
  if (isProblem(answer) || answer.mode !== 'local') return ask(token);
  token = secret;
  return answer;
}

let isFirst = true;

/** Starts: finds out who this is. Where this tab has signed in before, the pages are drawn meanwhile: what they show comes from the host, which
 * asks for the token. */
export async function start(): Promise<void> {
  useHooks({ token: () => token, unauthorized });
  token ??= keptToken();
  secret = takeSecret() ?? secret;
  signIn.value = { state: isFirst && signsInByItself() && !secret ? 'in' : 'starting' };
  isFirst = false;
  begins(pathOf('getSession'), true);
  // The worker starts while the host is asked who this is; but it lists everything anew, and the first rows come before that.
  void answered().then(listen);
  try {
    const answer = await enter();
    if (!isProblem(answer)) {
      accept(answer);
      post({ type: 'token', token });
      return;
    }
    if (answer.status !== 401) {
      signIn.value = { state: 'failed', problem: answer };
      return;
    }
    keepToken(null);
    token = null;
    if (await fromOtherTab()) return;
    // The page for it asks for the login, and not a dialog over the others.
    expired.value = null;
    signIn.value = { state: 'out', mode: answer.mode ?? 'token', problem: secret ? answer : null };
  } catch (error) {
    signIn.value = { state: 'failed', problem: { ...asProblem(error), title: 'The host does not answer', detail: 'The connection to the host failed. Is it still running?' } };
  }
}

/** A token that another tab has signed in with, if one is open. */
async function fromOtherTab(): Promise<boolean> {
  const found = await Promise.race([othersToken, new Promise<null>((resolve) => setTimeout(() => resolve(null), 400))]);
  firstToken = null;
  if (!found) return false;
  const answer = await ask(found);
  if (isProblem(answer)) return false;
  token = found;
  accept(answer);
  return true;
}

/** Signs in with a token, or with the address of `pintle console`; the problem, if it is not taken. */
export async function signInWith(text: string): Promise<Problem | null> {
  const given = cleanToken(text);
  try {
    const answer = await ask(given);
    if (isProblem(answer)) return answer;
    token = given;
    accept(answer);
    post({ type: 'token', token: given });
    return null;
  } catch (error) {
    return asProblem(error);
  }
}

/** Forgets the token, in all tabs. */
export function signOut(): void {
  token = null;
  session.value = null;
  expired.value = null;
  signIn.value = { state: 'out', mode: 'token', problem: null };
  post({ type: 'token', token: null });
}
