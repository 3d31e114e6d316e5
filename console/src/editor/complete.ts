// What may stand at a place of a YAML text, told from the kind's schema. By indentation alone: a text that is being typed seldom parses.
import { schemaAt } from '../forms/model';
import type { JsonSchema } from '../lib/kubernetes';

export interface Suggestion {
  label: string;
  /** What is put there, when it is more than the label. */
  apply: string;
  detail: string;
  info: string;
}

export interface Suggestions {
  /** Where what was typed of it begins. */
  from: number;
  options: Suggestion[];
}

interface Line {
  spaces: number;
  dashes: number;
  key: string;
}

const LINE = /^( *)((?:- +)*)(?:"([^"]*)"|'([^']*)'|([^\s:#"'[\]{},-][^:#]*?)) *:(?: |$)/;

function lineOf(text: string): Line | undefined {
  const found = LINE.exec(text);
  if (!found) return undefined;
  return { spaces: found[1]?.length ?? 0, dashes: (found[2]?.match(/-/g) ?? []).length, key: found[3] ?? found[4] ?? found[5] ?? '' };
}

/** Nobody indents a text so long that more lines above say where they are. */
const MOST_LINES = 5000;

/** The path of what stands around a line, when its own key begins at a column. */
export function pathAbove(lines: readonly string[], spaces: number, dashes: number): (string | number)[] {
  const path: (string | number)[] = [];
  // What is above belongs to it if it begins left of this; a list may begin right below its key.
  let limit = spaces;
  const enter = (spaces: number) => {
    path.unshift(0);
    limit = spaces + 1;
  };
  if (dashes > 0) enter(spaces);
  for (let at = lines.length - 1; at >= Math.max(0, lines.length - MOST_LINES) && limit > 0; at -= 1) {
    const line = lineOf(lines[at] ?? '');
    if (!line) continue;
    const column = line.spaces + 2 * line.dashes;
    if (column < limit) {
      path.unshift(line.key);
      limit = line.spaces;
      if (line.dashes > 0) enter(line.spaces);
    } else if (column === limit && line.dashes > 0) {
      enter(line.spaces);
    }
  }
  return path;
}

/** What may be typed at an offset; undefined where nothing is known. */
export function suggest(text: string, offset: number, schema: JsonSchema): Suggestions | undefined {
  const begin = text.lastIndexOf('\n', offset - 1) + 1;
  const typed = text.slice(begin, offset);
  const above = text.slice(0, begin).split('\n').slice(0, -1);
  const key = /^( *)((?:- +)*)([\w.-]*)$/.exec(typed);
  if (key) {
    const [, spaces = '', dashes = '', word = ''] = key;
    const inside = schemaAt(schema, pathAbove(above, spaces.length, dashes === '' ? 0 : 1));
    const items = inside?.enum ?? [];
    const options = Object.entries(inside?.properties ?? {}).map(([label, { type = '', description = '', properties, items }]) => ({
      label, apply: properties || items ? `${label}:` : `${label}: `, detail: type, info: description,
    }));
    return { from: offset - word.length, options: [...options, ...items.map(valueOf)] };
  }
  const value = /^( *)((?:- +)*)([\w.-]+): +([^\s#]*)$/.exec(typed);
  if (!value) return undefined;
  const [, spaces = '', dashes = '', name = '', word = ''] = value;
  const inside = schemaAt(schema, [...pathAbove(above, spaces.length, dashes === '' ? 0 : 1), name]);
  if (!inside) return undefined;
  const values = inside.enum ?? (inside.type === 'boolean' ? [true, false] : inside.default === undefined || typeof inside.default === 'object' ? [] : [inside.default]);
  return { from: offset - word.length, options: values.map(valueOf) };
}

/** A value as it is typed: a text that YAML would take for something else is quoted. */
function valueOf(value: unknown): Suggestion {
  const text = typeof value === 'string' && /^(true|false|null|~|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)?$/i.test(value) ? JSON.stringify(value) : String(value);
  return { label: text, apply: text, detail: '', info: '' };
}
