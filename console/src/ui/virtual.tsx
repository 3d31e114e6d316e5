// Tables for ten thousand objects: only what is on the screen is in the document.
import { Component } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { cellClass, type Column, Heads, type Order, ordered } from './table';
import { useWindowed } from './windowed';

export type { Column } from './table';

interface VirtualTableProps<R> {
  label: string;
  rows: readonly R[];
  columns: readonly Column<R>[];
  rowKey: (row: R) => string;
  /** Opens a row: Enter, or a click beside its links. */
  onOpen?: ((row: R) => void) | undefined;
  initial?: Order | undefined;
}

/** Moves the keyboard's row. Nothing, for keys that do not move it. */
function moved(key: string, at: number, count: number, page: number): number | undefined {
  const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 }[key];
  return to === undefined ? undefined : Math.max(0, Math.min(count - 1, to));
}

/** The height of a row, in pixels. */
const ROW = 41;

/** A table of many rows, all of the same height. Arrows or j and k move, Enter opens. */
export function VirtualTable<R>({ label, rows, columns, rowKey, onOpen, initial }: VirtualTableProps<R>) {
  const [order, setOrder] = useState<Order | undefined>(initial);
  const shown = useMemo(() => ordered(rows, columns, order), [rows, columns, order]);
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, end } = useWindowed(body, shown.length, ROW);
  const [active, setActive] = useState(0);
  const wanted = useRef<number | undefined>(undefined);
  const current = Math.min(active, Math.max(0, shown.length - 1));

  // A row that the keyboard went to may have to be drawn first.
  useLayoutEffect(() => {
    if (wanted.current === undefined) return;
    const row = body.current?.querySelector<HTMLElement>(`[aria-rowindex="${wanted.current + 2}"]`);
    if (row) {
      wanted.current = undefined;
      row.focus({ preventScroll: true });
      row.scrollIntoView({ block: 'nearest' });
    }
  });

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof HTMLElement) || event.target.tagName !== 'TR') return;
    if (event.key === 'Enter') {
      const row = shown[current];
      if (row && onOpen) onOpen(row);
      return;
    }
    const to = moved(event.key, current, shown.length, 15);
    if (to === undefined) return;
    event.preventDefault();
    wanted.current = to;
    setActive(to);
    if (to < first || to >= end) {
      const top = body.current?.getBoundingClientRect().top ?? 0;
      body.current?.closest('.table-box')?.parentElement?.scrollIntoView({ block: 'nearest' });
      window.scrollBy(0, top + to * ROW - window.innerHeight / 2);
    }
  };
  const onClick = (event: MouseEvent, row: R) => {
    const isControl = event.target instanceof Element && event.target.closest('a, button, input, label') !== null;
    if (!onOpen || isControl || event.defaultPrevented || (getSelection()?.toString() ?? '') !== '') return;
    onOpen(row);
  };

  const latest = useRef(onClick);
  latest.current = onClick;

  return (
    <div class="table-box windowed">
      <table class="table fixed sticky" aria-label={label} aria-rowcount={shown.length + 1}>
        <colgroup>{columns.map((column) => <col key={column.key} class={cellClass(column)} style={column.width ? { width: column.width } : undefined} />)}</colgroup>
        <thead><Heads columns={columns} order={order} onOrder={setOrder} /></thead>
        <tbody ref={body} onKeyDown={onKeyDown}>
          {first > 0 && <tr class="gap" aria-hidden="true" key="above"><td style={{ height: `${first * ROW}px` }} /></tr>}
          {shown.slice(first, end).map((row, offset) => {
            const index = first + offset;
            const isTarget = index === Math.max(first, Math.min(current, end - 1));
            return <VirtualRow key={rowKey(row)} row={row} columns={columns} index={index} opens={onOpen !== undefined} isTarget={isTarget} isLast={index === shown.length - 1} onFocus={setActive} onClick={(event, row) => latest.current(event, row)} />;
          })}
          {end < shown.length && <tr class="gap" aria-hidden="true" key="below"><td style={{ height: `${(shown.length - end) * ROW}px` }} /></tr>}
        </tbody>
      </table>
    </div>
  );
}

interface VirtualRowProps<R> {
  row: R;
  columns: readonly Column<R>[];
  index: number;
  opens: boolean;
  /** The row to which Tab leads. */
  isTarget: boolean;
  isLast: boolean;
  onFocus: (index: number) => void;
  onClick: (event: MouseEvent, row: R) => void;
}

/** A row, drawn again only when it is another, or stands elsewhere: scrolling moves many and changes few. */
class VirtualRow<R> extends Component<VirtualRowProps<R>> {
  override shouldComponentUpdate(next: VirtualRowProps<R>): boolean {
    const { row, columns, index, opens, isTarget, isLast } = this.props;
    return row !== next.row || columns !== next.columns || index !== next.index || opens !== next.opens || isTarget !== next.isTarget || isLast !== next.isLast;
  }

  override render() {
    const { row, columns, index, opens, isTarget, isLast, onFocus, onClick } = this.props;
    return (
      <tr
        class={`${opens ? 'opens' : ''}${isLast ? ' last' : ''}`}
        style={{ height: `${ROW}px` }}
        aria-rowindex={index + 2}
        tabIndex={opens ? (isTarget ? 0 : -1) : undefined}
        onFocus={() => onFocus(index)}
        onClick={(event) => onClick(event, row)}
      >
        {columns.map((column) => <td key={column.key} class={cellClass(column)}>{column.cell(row)}</td>)}
      </tr>
    );
  }
}
