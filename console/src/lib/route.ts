// Which page an address names. Pure; the router acts on it.

export interface Match<T> {
  entry: T;
  params: Record<string, string>;
}

/** The parts of an address that a pattern such as `/kinds/:group/:version/:plural` names; null where it does not fit. */
export function params(pattern: string, path: string): Record<string, string> | null {
  const [want = [], got = []] = [pattern, path].map((text) => text.split('/').filter((part) => part !== ''));
  if (want.length !== got.length) return null;
  try {
    const pairs = want.map((part, index) => [part, decodeURIComponent(got[index] ?? '')] as const);
    if (pairs.some(([part, given]) => !part.startsWith(':') && part !== given)) return null;
    return Object.fromEntries(pairs.filter(([part]) => part.startsWith(':')).map(([part, given]) => [part.slice(1), given]));
  } catch {
    // It cannot be decoded.
    return null;
  }
}

/** The first entry that fits: one of words stands before one of parameters. */
export function match<T extends { path: string }>(entries: T[], path: string): Match<T> | null {
  for (const entry of entries) {
    const found = params(entry.path, path);
    if (found) return { entry, params: found };
  }
  return null;
}
