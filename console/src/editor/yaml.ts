// YAML text and values: the only file that knows the library, so that it is loaded with the editor and not before.
import { isMap, isSeq, LineCounter, type Node, parseDocument, stringify } from 'yaml';

/** Something wrong at a line of a text; lines count from 1. */
export interface LineProblem {
  line: number;
  message: string;
}

/** A value as YAML, as kubectl prints it. A text that stands alone is quoted: the library reads some blocks at the left edge otherwise than it
 * writes them. */
export function print(value: unknown): string {
  return value === undefined || value === null ? '' : stringify(value, { lineWidth: 0, indentSeq: false, aliasDuplicateObjects: false, defaultStringType: typeof value === 'string' ? 'QUOTE_DOUBLE' : 'PLAIN' });
}

export interface Read {
  /** What stands in the text; undefined while it cannot be read. */
  value: unknown;
  problems: LineProblem[];
  /** The line of a field, or of the nearest thing around it that is there. */
  lineOf: (path: readonly (string | number)[]) => number;
}

const MOST_ALIASES = 20;

/** Reads a text, however unfinished it is. */
export function read(text: string): Read {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true, version: '1.2' });
  const at = (offset: number) => Math.max(1, lines.linePos(offset).line);
  const problems = document.errors.map(({ message, pos }) => ({ line: at(pos[0]), message }));
  const lineOf = (path: readonly (string | number)[]) => {
    let node: unknown = document.contents;
    let line = 1;
    for (const part of path) {
      const found = step(node, part);
      if (!found) break;
      line = at(found.start);
      node = found.node;
    }
    return line;
  };
  let value: unknown;
  if (problems.length === 0) {
    try {
      value = document.toJS({ maxAliasCount: MOST_ALIASES }) as unknown;
    } catch (error) {
      problems.push({ line: 1, message: error instanceof Error ? error.message : String(error) });
    }
  }
  return { value, problems, lineOf };
}

/** One step down: the member, and where it begins. */
function step(node: unknown, part: string | number): { node: unknown; start: number } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => String((key as { value?: unknown } | null)?.value) === String(part));
    const start = (pair?.key as Node | undefined)?.range?.[0];
    return pair && start !== undefined ? { node: pair.value, start } : undefined;
  }
  if (isSeq(node)) {
    const item = node.items[Number(part)] as Node | undefined;
    return item?.range ? { node: item, start: item.range[0] } : undefined;
  }
  return undefined;
}
