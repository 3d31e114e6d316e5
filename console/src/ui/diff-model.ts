// Reads a unified diff, for drawing it in one column or in two.

export interface Line {
  kind: 'same' | 'add' | 'del' | 'hunk';
  text: string;
}

/** The lines of a unified diff; the names of its files are left out, because the page says them. */
export function linesOf(diff: string): Line[] {
  const lines = diff.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const found: Line[] = [];
  let isInside = false;
  for (const line of lines) {
    if (line.startsWith('@@')) {
      isInside = true;
      found.push({ kind: 'hunk', text: line });
    } else if (!isInside && (line.startsWith('--- ') || line.startsWith('+++ ') || line.startsWith('diff '))) {
      continue;
    } else if (line.startsWith('\\')) {
      continue;
    } else {
      const kind = line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : 'same';
      found.push({ kind, text: kind === 'same' && !line.startsWith(' ') ? line : line.slice(1) });
    }
  }
  return found;
}

export interface Pair {
  left: Line | null;
  right: Line | null;
}

/** The same lines beside each other: what went away on the left, what came instead on the right. */
export function pairsOf(lines: readonly Line[]): Pair[] {
  const pairs: Pair[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line) break;
    if (line.kind === 'same' || line.kind === 'hunk') {
      pairs.push({ left: line, right: line });
      at += 1;
      continue;
    }
    const gone: Line[] = [];
    const come: Line[] = [];
    for (let next = lines[at]; next && (next.kind === 'add' || next.kind === 'del'); at += 1, next = lines[at]) (next.kind === 'del' ? gone : come).push(next);
    for (let row = 0; row < Math.max(gone.length, come.length); row += 1) pairs.push({ left: gone[row] ?? null, right: come[row] ?? null });
  }
  return pairs;
}
