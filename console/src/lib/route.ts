// Which page an address names. Pure; the router acts on it.

export interface Match<T> {
  entry: T;
  params: Record<string, string>;
}

/** The parts of an address that a pattern such as `/sources/:namespace/:name` names; null where it does not fit. */
export function params(pattern: string, path: string): Record<string, string> | null {
  const [want, got] = [pattern, path].map((text) => text.split('/').filter((part) => part !== ''));
  if (!want || !got || want.length !== got.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of want.entries()) {
    const given = decode(got[index] ?? '');
    if (given === null) return null;
    if (part.startsWith(':')) found[part.slice(1)] = given;
    else if (part !== given) return null;
  }
  return found;
}

function decode(part: string): string | null {
  try {
    return decodeURIComponent(part);
  } catch {
    return null;
  }
}

/** The first entry that fits; words win over parameters, so that `/sources/new` is no object. */
export function match<T extends { path: string }>(entries: T[], path: string): Match<T> | null {
  const fits: (Match<T> & { words: number })[] = [];
  for (const entry of entries) {
    const found = params(entry.path, path);
    if (found) fits.push({ entry, params: found, words: entry.path.split('/').filter((part) => part && !part.startsWith(':')).length });
  }
  fits.sort((one, other) => other.words - one.words);
  const best = fits[0];
  return best ? { entry: best.entry, params: best.params } : null;
}
