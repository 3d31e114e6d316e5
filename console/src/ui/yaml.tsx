// YAML to read, and YAML to write. What they need is loaded when the first of them is shown.
import { signal } from '@preact/signals';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { EditorProps } from '../editor/editor';
import { Skeleton } from './feedback';
import { IconButton } from './button';
import { beginning } from './text';
import { toast } from './toast';

export type YamlLibrary = typeof import('../editor/yaml');

const library = signal<YamlLibrary | undefined>(undefined);

/** What reads and prints YAML; it is loaded when somebody wants it first. */
export function useYamlLibrary(wanted = true): YamlLibrary | undefined {
  useEffect(() => {
    if (wanted) void import('../editor/yaml').then((loaded) => (library.value = loaded));
  }, [wanted]);
  return library.value;
}

/** More lines nobody reads here: what is copied is whole. */
const MOST_LINES = 4000;

/** A value as YAML. */
export function YamlView({ value, label = 'YAML', max }: { value: unknown; label?: string | undefined; max?: string | undefined }) {
  const yaml = useYamlLibrary();
  const text = useMemo(() => yaml?.print(value), [yaml, value]);
  if (text === undefined) return <Skeleton lines={6} />;
  const copy = () => void navigator.clipboard.writeText(text).then(() => toast('Copied.'), () => toast('The browser did not allow copying.', 'bad'));
  const lines = text.split('\n');
  return (
    <div class="yaml">
      <IconButton small icon="copy" label="Copy YAML" onClick={copy} />
      <div class="code" tabIndex={0} role="region" aria-label={label} style={max ? { '--code-max': max } : undefined}>
        <pre><code>{lines.slice(0, MOST_LINES).map((line, index) => <Line key={index} text={beginning(line)} />)}</code></pre>
      </div>
      {lines.length > MOST_LINES && <p class="muted small">{(lines.length - MOST_LINES).toLocaleString('en')} more lines are copied, and not shown.</p>}
    </div>
  );
}

const KEY = /^(\s*(?:- )*)("[^"]*"|'[^']*'|[^\s#'"][^:#]*?)(:)( .*)?$/;

/** A line of YAML with its key marked, and what a value is. Within a block text no line is told apart: the colours are a help, not a parser. */
function Line({ text }: { text: string }) {
  const found = KEY.exec(text);
  if (!found) return <>{text}{'\n'}</>;
  const [, indent, key, colon, value = ''] = found;
  return <>{indent}<span class="k">{key}</span>{colon}<span class={kindOf(value.trim())}>{value}</span>{'\n'}</>;
}

function kindOf(value: string): string | undefined {
  if (/^(-?\d[\d.]*|true|false|null)$/.test(value)) return 'n';
  return value === '' || /^[|>{[]/.test(value) ? undefined : 's';
}

/** An editor for YAML; `problems` stand at their lines. */
export function YamlEditor(props: EditorProps) {
  const [editor, setEditor] = useState<typeof import('../editor/editor')>();
  useEffect(() => void import('../editor/editor').then(setEditor), []);
  if (!editor) return <div class="editor"><Skeleton lines={6} label="Loading the editor" /></div>;
  return <editor.Editor {...props} />;
}
