// CodeMirror for YAML. It lives in a shadow root: there its styles are adopted sheets, which the page's policy allows.
import { closeBrackets, closeBracketsKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint';
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useRef } from 'preact/hooks';
import type { LineProblem } from './yaml';

export type { LineProblem } from './yaml';

export interface EditorProps {
  value: string;
  onInput: (value: string) => void;
  problems?: readonly LineProblem[] | undefined;
  label: string;
  onBlur?: (() => void) | undefined;
  /** A line to go to; another object goes there again. */
  goTo?: { line: number } | undefined;
  /** Ctrl or Cmd with Enter, or with S. */
  onSubmit?: (() => void) | undefined;
}

const theme = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '12.5px', minHeight: '220px', maxHeight: 'min(70vh, 720px)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '19px', overflow: 'auto' },
  '.cm-content': { padding: '8px 0', caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { color: 'var(--muted)', backgroundColor: 'var(--surface)', border: 'none', paddingLeft: '4px' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--hover)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'light-dark(#cfe8ea, #1d4a50)' },
  '.cm-matchingBracket': { backgroundColor: 'var(--accent-soft)', outline: 'none' },
  '.cm-tooltip': { color: 'var(--text)', backgroundColor: 'var(--raised)', border: '1px solid var(--line)', borderRadius: '6px' },
  '.cm-diagnostic': { padding: '4px 8px', fontFamily: 'var(--sans)' },
  '.cm-panels': { color: 'var(--text)', backgroundColor: 'var(--sunken)', borderColor: 'var(--line)' },
  '.cm-panel input, .cm-panel button': { color: 'var(--text)', background: 'var(--surface)', border: '1px solid var(--line-strong)', borderRadius: '4px' },
  '.cm-searchMatch': { backgroundColor: 'var(--warn-soft)' },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--accent)' },
  { tag: [tags.string, tags.special(tags.string), tags.content], color: 'light-dark(#7a4300, #e3b98b)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword, tags.atom], color: 'light-dark(#5b3aa6, #c4b1f5)' },
  { tag: [tags.comment, tags.meta], color: 'var(--muted)', fontStyle: 'italic' },
  { tag: [tags.punctuation, tags.separator], color: 'var(--muted)' },
]);

/** Problems, as the editor marks them: from the line's first letter to its end. */
function diagnostics(state: EditorState, problems: readonly LineProblem[]): Diagnostic[] {
  return problems.map(({ line, message }) => {
    const { from, to, text } = state.doc.line(Math.max(1, Math.min(line, state.doc.lines)));
    const indent = text.length - text.trimStart().length;
    return { from: Math.min(from + indent, to), to, severity: 'error', message };
  });
}

/**
 * Types over a selection. Left to Chromium, it keeps the look of what was selected by a style attribute, which the page's policy refuses and
 * reports.
 */
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { main, ranges } = view.state.selection;
  const { data } = event;
  if (event.inputType !== 'insertText' || data === null || main.empty || ranges.length > 1 || view.composing) return false;
  event.preventDefault();
  const { from, to } = main;
  const insert = () => view.state.update({ changes: { from, to, insert: data }, selection: { anchor: from + data.length }, userEvent: 'input.type', scrollIntoView: true });
  const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, data, insert));
  if (!isHandled) view.dispatch(insert());
  return true;
}

/** More problems than these nobody reads at once. */
const MOST_PROBLEMS = 20;

/** An editor for YAML. Tab indents; Escape and then Tab leaves it, as the hint below it says. */
export function Editor(props: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  // What was told and has not come back yet: somebody may have typed on meanwhile, which must not be undone by the echo.
  const echoes = useRef<string[]>([]);

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const submit = () => {
      latest.current.onSubmit?.();
      return true;
    };
    const editor = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: latest.current.value,
        extensions: [
          lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), drawSelection(), history(), indentOnInput(), bracketMatching(), closeBrackets(),
          highlightSelectionMatches(), lintGutter(), yaml(), indentUnit.of('  '), syntaxHighlighting(colours), theme,
          EditorView.contentAttributes.of({ 'aria-label': latest.current.label, spellcheck: 'false', autocapitalize: 'off' }),
          keymap.of([
            { key: 'Mod-Enter', run: submit }, { key: 'Mod-s', run: submit, preventDefault: true },
            ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...lintKeymap, indentWithTab,
          ]),
          EditorView.updateListener.of(({ docChanged, state }) => {
            if (!docChanged) return;
            const text = state.doc.toString();
            if (text === latest.current.value && echoes.current.length === 0) return;
            echoes.current = [...echoes.current.slice(-50), text];
            latest.current.onInput(text);
          }),
          EditorView.domEventHandlers({ blur: () => latest.current.onBlur?.(), beforeinput: typeOver }),
        ],
      }),
    });
    view.current = editor;
    return () => editor.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    const echo = echoes.current.indexOf(props.value);
    echoes.current = echoes.current.slice(echo + 1);
    if (!editor || echo >= 0 || editor.state.doc.toString() === props.value) return;
    echoes.current = [];
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: props.value } });
  }, [props.value]);

  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, diagnostics(editor.state, props.problems ?? [])));
  }, [props.problems, props.value]);

  useEffect(() => {
    const editor = view.current;
    if (!editor || !props.goTo) return;
    const { from } = editor.state.doc.line(Math.max(1, Math.min(props.goTo.line, editor.state.doc.lines)));
    editor.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    editor.focus();
  }, [props.goTo]);

  return (
    <div class="stack tight">
      <div class="editor" ref={host} />
      <p class="help">Esc and then Tab leaves the editor.</p>
      {(props.problems?.length ?? 0) > 0 && (
        <div role="status">
          <ul class="plain field-error lines">{props.problems?.slice(0, MOST_PROBLEMS).map(({ line, message }) => <li key={`${line} ${message}`}>Line {line}: {message}</li>)}</ul>
        </div>
      )}
    </div>
  );
}
