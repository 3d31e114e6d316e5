// Reads a unified diff.

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
    const isHunk = line.startsWith('@@');
    isInside ||= isHunk;
    if (line.startsWith('\\') || (!isInside && /^(--- |\+\+\+ |diff )/.test(line))) continue;
    const kind = isHunk ? 'hunk' : line.startsWith('+') ? 'add' : line.startsWith('-') ? 'del' : 'same';
    found.push({ kind, text: /^[ +-]/.test(line) ? line.slice(1) : line });
  }
  return found;
}
