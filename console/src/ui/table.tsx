import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { Icon } from './icon';

/** A column of a table. */
export interface Column<R> {
  key: string;
  title: string;
  cell: (row: R) => ComponentChildren;
  /** Makes the column one to sort by. */
  sort?: ((one: R, other: R) => number) | undefined;
  /** A CSS width; columns without share the rest. */
  width?: string | undefined;
  /** How early it gives way on a narrow screen: 1 never, 2 on a telephone, 3 first. */
  priority?: 1 | 2 | 3 | undefined;
  end?: boolean | undefined;
}

export interface Order {
  key: string;
  down: boolean;
}

/** The classes of a column's cells. */
export function cellClass<R>({ priority, end }: Column<R>): string | undefined {
  return [priority === 2 ? 'p2' : priority === 3 ? 'p3' : '', end ? 'end' : ''].filter(Boolean).join(' ') || undefined;
}

/** The rows in the order that was asked for. */
export function ordered<R>(rows: readonly R[], columns: readonly Column<R>[], order: Order | undefined): readonly R[] {
  const sort = columns.find(({ key }) => key === order?.key)?.sort;
  if (!sort || !order) return rows;
  const sign = order.down ? -1 : 1;
  return [...rows].sort((one, other) => sign * sort(one, other));
}

/** The heads of the columns; those that sort are buttons. */
export function Heads<R>({ columns, order, onOrder }: { columns: readonly Column<R>[]; order: Order | undefined; onOrder: (order: Order) => void }) {
  return (
    <tr>
      {columns.map((column) => {
        const { key, title, sort } = column;
        const isBy = order?.key === key;
        return (
          <th key={key} scope="col" class={cellClass(column)} aria-sort={isBy ? (order.down ? 'descending' : 'ascending') : undefined}>
            {sort ? (
              <button type="button" onClick={() => onOrder({ key, down: isBy && !order.down })}>
                {title}
                {isBy && <Icon name={order.down ? 'down' : 'up'} />}
              </button>
            ) : title || <span class="sr-only">Actions</span>}
          </th>
        );
      })}
    </tr>
  );
}

interface TableProps<R> {
  label: string;
  rows: readonly R[];
  columns: readonly Column<R>[];
  rowKey: (row: R) => string;
  initial?: Order | undefined;
}

/** A table of few rows. Thousands go into a VirtualTable. */
export function Table<R>({ label, rows, columns, rowKey, initial }: TableProps<R>) {
  const [order, setOrder] = useState<Order | undefined>(initial);
  return (
    <div class="table-box">
      <table class="table" aria-label={label}>
        <thead><Heads columns={columns} order={order} onOrder={setOrder} /></thead>
        <tbody>
          {ordered(rows, columns, order).map((row) => (
            <tr key={rowKey(row)}>{columns.map((column) => <td key={column.key} class={cellClass(column)}>{column.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
