import { linesOf } from './diff-model';

const SIGNS = { same: '', add: '+', del: '-' } as const;
const WORDS = { same: '', add: 'added: ', del: 'removed: ' } as const;

/** A unified diff. */
export function Diff({ text, label }: { text: string; label: string }) {
  const lines = linesOf(text);
  if (lines.length === 0) return <p class="muted">No differences.</p>;
  return (
    <div class="diff" tabIndex={0} role="region" aria-label={label}>
      <table>
        <tbody>
          {lines.map(({ kind, text }, index) => (kind === 'hunk' ? <tr key={index} class="hunk"><td colSpan={2}>{text}</td></tr> : (
            <tr key={index}>
              <td class={`sign ${kind}`} aria-hidden="true">{SIGNS[kind]}</td>
              <td class={kind}>{WORDS[kind] && <span class="sr-only">{WORDS[kind]}</span>}{text}</td>
            </tr>
          )))}
        </tbody>
      </table>
    </div>
  );
}
