import { type Line, linesOf, pairsOf } from './diff-model';

const SIGNS = { same: '', add: '+', del: '-', hunk: '' } as const;
const WORDS = { same: '', add: 'added: ', del: 'removed: ', hunk: '' } as const;

function Cells({ line }: { line: Line | null }) {
  if (!line) return <><td class="sign none" /><td class="none" /></>;
  return (
    <>
      <td class={`sign ${line.kind}`} aria-hidden="true">{SIGNS[line.kind]}</td>
      <td class={line.kind}>{WORDS[line.kind] && <span class="sr-only">{WORDS[line.kind]}</span>}{line.text}</td>
    </>
  );
}

/** A unified diff, drawn in one column or side by side. */
export function Diff({ text, mode = 'unified', label = 'Differences' }: { text: string; mode?: 'unified' | 'side' | undefined; label?: string | undefined }) {
  const lines = linesOf(text);
  if (lines.length === 0) return <p class="muted">No differences.</p>;
  const hunk = (line: Line, index: number, span: number) => <tr key={index} class="hunk"><td colSpan={span}>{line.text}</td></tr>;
  return (
    <div class={`diff ${mode}`} tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {mode === 'side'
            ? pairsOf(lines).map(({ left, right }, index) => (left?.kind === 'hunk' ? hunk(left, index, 4) : <tr key={index}><Cells line={left} /><Cells line={right} /></tr>))
            : lines.map((line, index) => (line.kind === 'hunk' ? hunk(line, index, 2) : <tr key={index}><Cells line={line} /></tr>))}
        </tbody>
      </table>
    </div>
  );
}
