// A text with known values to choose from: the pattern "editable combobox with list" of the ARIA guide.
import { useId, useRef, useState } from 'preact/hooks';
import { useWiring } from './field';
import { Icon } from './icon';
import type { Option } from './inputs';

interface ComboProps {
  value: string;
  options: readonly Option[];
  onInput: (value: string) => void;
  placeholder?: string | undefined;
  label?: string | undefined;
  disabled?: boolean | undefined;
  onBlur?: (() => void) | undefined;
}

export function Combo({ value, options, onInput, placeholder, label, disabled, onBlur }: ComboProps) {
  const wiring = useWiring();
  const list = useId();
  const [isOpen, setOpen] = useState(false);
  const [isTyping, setTyping] = useState(false);
  const [active, setActive] = useState(-1);
  const input = useRef<HTMLInputElement>(null);

  const wanted = isTyping ? value.toLowerCase() : '';
  const shown = options.filter(({ value, label }) => `${value} ${label}`.toLowerCase().includes(wanted));
  const open = (at = -1) => {
    setOpen(true);
    setActive(at);
  };
  const close = () => {
    setOpen(false);
    setTyping(false);
    setActive(-1);
  };
  const choose = (option: Option | undefined) => {
    if (option) onInput(option.value);
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step !== 0 && shown.length > 0) {
      event.preventDefault();
      if (isOpen) setActive((active + step + shown.length) % shown.length);
      else open(step > 0 ? 0 : shown.length - 1);
    } else if (event.key === 'Enter' && isOpen && active >= 0) {
      event.preventDefault();
      choose(shown[active]);
    } else if (event.key === 'Escape' && isOpen) {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  };
  const isShown = isOpen && shown.length > 0;

  return (
    <div class="combo">
      <input
        ref={input}
        id={wiring.id}
        class="input"
        type="text"
        role="combobox"
        value={value}
        placeholder={placeholder}
        disabled={disabled}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        aria-label={label}
        aria-expanded={isShown}
        aria-controls={isShown ? list : undefined}
        aria-autocomplete="list"
        aria-activedescendant={isShown && active >= 0 ? `${list}-${active}` : undefined}
        aria-describedby={wiring.describedBy}
        aria-invalid={wiring.invalid || undefined}
        aria-required={wiring.required || undefined}
        onInput={(event) => {
          setTyping(true);
          open();
          onInput(event.currentTarget.value);
        }}
        onClick={() => open()}
        onKeyDown={onKeyDown}
        onBlur={() => {
          close();
          onBlur?.();
        }}
      />
      <button type="button" class="btn quiet icon-only" tabIndex={-1} aria-hidden="true" disabled={disabled} onMouseDown={(event) => {
        event.preventDefault();
        input.current?.focus();
        if (isOpen) close();
        else open();
      }}>
        <Icon name="chevron" />
      </button>
      {isShown && (
        <ul class="listbox" id={list} role="listbox" aria-label={label ?? 'Known values'}>
          {shown.map((option, index) => (
            <li key={option.value} id={`${list}-${index}`} role="option" aria-selected={index === active} onMouseDown={(event) => {
              event.preventDefault();
              choose(option);
            }} onMouseMove={() => setActive(index)}>
              <span>{option.label}</span>
              {option.hint && <span>{option.hint}</span>}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
