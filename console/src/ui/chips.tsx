// Several short texts: Enter, comma or leaving the box adds one, Backspace in the empty box takes the last one back.
import { useRef, useState } from 'preact/hooks';
import { useWiring } from './field';
import { Icon } from './icon';

interface ChipsProps {
  value: readonly string[];
  onChange: (value: string[]) => void;
  placeholder?: string | undefined;
  /** What is wrong with a chip, if anything is; the chip is marked. */
  wrong?: ((chip: string, index: number) => string | undefined) | undefined;
  onBlur?: (() => void) | undefined;
}

/** What ends a chip, besides Enter. */
const SEPARATORS = /[\s,]+/;

/** The texts of a line that somebody typed or pasted. */
export function chipsOf(text: string): string[] {
  return text.split(SEPARATORS).filter((part) => part !== '');
}

export function Chips({ value, onChange, placeholder, wrong, onBlur }: ChipsProps) {
  const wiring = useWiring();
  const [draft, setDraft] = useState('');
  const [said, say] = useState('');
  const input = useRef<HTMLInputElement>(null);

  const add = (text: string) => {
    const fresh = chipsOf(text).filter((chip, index, all) => !value.includes(chip) && all.indexOf(chip) === index);
    setDraft('');
    if (fresh.length === 0) return;
    onChange([...value, ...fresh]);
    say(`Added ${fresh.join(', ')}`);
  };
  const remove = (index: number) => {
    onChange(value.filter((_, at) => at !== index));
    say(`Removed ${value[index] ?? ''}`);
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === 'Enter') {
      event.preventDefault();
      add(draft);
    } else if (event.key === 'Backspace' && draft === '' && value.length > 0) {
      event.preventDefault();
      remove(value.length - 1);
    }
  };

  return (
    <div class={wiring.invalid ? 'chips wrong' : 'chips'} onClick={(event) => event.target === event.currentTarget && input.current?.focus()}>
      <ul role="list">
        {value.map((chip, index) => {
          const why = wrong?.(chip, index);
          return (
            <li key={chip} class={why ? 'chip wrong' : 'chip'} title={why}>
              <span class="cut">{chip}</span>
              <button type="button" aria-label={`Remove ${chip}`} onClick={() => remove(index)}><Icon name="cross" /></button>
            </li>
          );
        })}
      </ul>
      <input
        ref={input}
        id={wiring.id}
        type="text"
        value={draft}
        placeholder={value.length === 0 ? placeholder : undefined}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-describedby={wiring.describedBy}
        aria-invalid={wiring.invalid || undefined}
        aria-required={wiring.required || undefined}
        onInput={(event) => {
          const text = event.currentTarget.value;
          if (chipsOf(text).length > 0 && SEPARATORS.test(text.slice(-1))) add(text);
          else setDraft(text);
        }}
        onPaste={(event) => {
          const text = event.clipboardData?.getData('text') ?? '';
          if (chipsOf(text).length < 2) return;
          event.preventDefault();
          add(draft + text);
        }}
        onKeyDown={onKeyDown}
        onBlur={() => {
          if (draft.trim() !== '') add(draft);
          onBlur?.();
        }}
      />
      <span class="sr-only" role="status">{said}</span>
    </div>
  );
}
