// Rows of a list, in the order in which the API server lists them.
import type { Row } from '../api/generated';

export function rowKey(row: { namespace: string | null; name: string }): string {
  return `${row.namespace ?? ''}/${row.name}`;
}

/** As the API server orders them: by `namespace/name`, in which `team-1/a` comes before `team/a`. */
function compare(one: Row, other: Row): number {
  const [a, b] = one.namespace === other.namespace ? [one.name, other.name] : [rowKey(one), rowKey(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Whether these follow each other, and all of them what is there: the next page of a list. */
function follows(rows: Row[], put: Row[]): boolean {
  const last = rows.at(-1);
  return put.every((row, index) => {
    const before = index > 0 ? put[index - 1] : last;
    return before === undefined || compare(before, row) < 0;
  });
}

/**
 * The rows after a change: `put` replace or come in at their place, `gone` (keys) leave. What did not change is the same object, and
 * nothing is copied when nothing changed.
 */
export function mergeRows(rows: Row[], put: Row[], gone: string[]): Row[] {
  if (put.length === 0 && gone.length === 0) return rows;
  let next: Row[];
  if (follows(rows, put)) {
    next = rows.concat(put);
  } else {
    const all = new Map([...rows, ...put].map((row) => [rowKey(row), row]));
    next = [...all.values()].sort(compare);
  }
  if (gone.length === 0) return next;
  const leave = new Set(gone);
  return next.filter((row) => !leave.has(rowKey(row)));
}

/** Several changes as one, the later ones winning. */
export class Changes {
  #put = new Map<string, Row>();
  #gone = new Set<string>();

  put(row: Row): void {
    this.#put.set(rowKey(row), row);
    this.#gone.delete(rowKey(row));
  }

  gone(key: string): void {
    this.#put.delete(key);
    this.#gone.add(key);
  }

  take(): { put: Row[]; gone: string[] } {
    const taken = { put: [...this.#put.values()], gone: [...this.#gone] };
    this.#put.clear();
    this.#gone.clear();
    return taken;
  }
}
