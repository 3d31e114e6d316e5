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
