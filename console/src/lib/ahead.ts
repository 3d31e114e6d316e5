// The requests with which pages begin. Where the tab signs in by itself, with a token that it keeps, the script in the head makes those of the
// last visit anew while the console is still being read.

/** The requests with which visits begin. */
export interface Kept {
  /** Those of every page. */
  all: string[];
  /** Those of pages that ask for something ahead, by their addresses: as many as the route table says. */
  of: Record<string, string[]>;
}

/** What the script in the head offers. */
export interface Ahead {
  /** What the last visits kept; null if they did not sign in by themselves. */
  kept: Kept | null;
  /** The token of this machine's console. One of a cluster is never kept. */
  token: string | null;
  /** The requests that were made already. */
  asked: Map<string, Promise<Response>>;
  keep(kept: Kept | null): void;
  /** Keeps a token; none, when it is no longer good. */
  keepToken(token: string | null): void;
}

declare global {
  interface Window {
    pintleAhead?: Ahead;
  }
}

/** The requests with which this visit has begun, or would have if it had been known to sign in by itself. */
const begun: Kept = { all: [], of: {} };

const ahead = (): Ahead | undefined => (typeof window === 'undefined' ? undefined : window.pintleAhead);

/** The token that the tab keeps, if it has signed in to the console of this machine. */
export const keptToken = (): string | null => ahead()?.token ?? null;

export const keepToken = (token: string | null): void => ahead()?.keepToken(token);

/** Whether this tab can sign in by itself: then requests can be made before the host has said who this is. */
export const signsInByItself = (): boolean => Boolean(ahead()?.kept && keptToken());

/** Takes the answer of a request that was made in the head, if it was. */
export function takeAhead(path: string): Promise<Response> | undefined {
  const asked = ahead()?.asked.get(path);
  ahead()?.asked.delete(path);
  return asked;
}

/** Makes a request, or takes the answer of the one that was made in the head. */
export function fetchAhead(path: string): Promise<Response> {
  const asked = takeAhead(path);
  if (asked) return asked;
  const token = keptToken();
  return fetch(path, { headers: { accept: 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) }, credentials: 'same-origin' });
}

/** The longest that the rest of the console waits for what the head has asked, in milliseconds. */
const PATIENCE = 1_000;

/** Resolves when what the head has asked is answered: what is not needed for the first picture begins then. At once, where it asked nothing. */
export async function answered(): Promise<void> {
  const asked = [...(ahead()?.asked.values() ?? [])];
  if (asked.length === 0) return;
  const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
  await Promise.race([Promise.allSettled(asked), late]);
  // After the answers have been drawn.
  await new Promise((resolve) => setTimeout(resolve));
}

/** Says that visits of this page begin with a request, or those of every page. */
export function begins(path: string, everywhere = false): void {
  const paths = everywhere ? begun.all : (begun.of[location.pathname] ??= []);
  if (paths.includes(path)) return;
  paths.push(path);
  if (isKept) keepAhead(true);
}

let isKept = false;

/** Keeps with what this visit has begun for the next one, now that it is known how it signed in. */
export function keepAhead(byItself: boolean): void {
  isKept = byItself;
  ahead()?.keep(byItself ? { all: begun.all, of: { ...ahead()?.kept?.of, ...begun.of } } : null);
}
