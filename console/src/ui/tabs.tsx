import type { ComponentChildren } from 'preact';
import { useId, useRef } from 'preact/hooks';

export interface Tab {
  key: string;
  label: string;
  badge?: ComponentChildren;
  /** Its badge counts what is wrong. */
  bad?: boolean | undefined;
}

interface TabsProps {
  tabs: readonly Tab[];
  value: string;
  onChange: (key: string) => void;
  label: string;
  /** The panel of the tab that is open. */
  children: ComponentChildren;
}

/** Tabs, of which one is open. Arrows, Home and End move between them. */
export function Tabs({ tabs, value, onChange, label, children }: TabsProps) {
  const id = useId();
  const bar = useRef<HTMLDivElement>(null);
  const go = (event: KeyboardEvent) => {
    const at = tabs.findIndex(({ key }) => key === value);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    const tab = tabs[next];
    if (!tab) return;
    onChange(tab.key);
    (bar.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={bar} onKeyDown={go}>
        {tabs.map(({ key, label, badge, bad }) => (
          <button key={key} type="button" role="tab" id={`${id}-${key}`} aria-selected={key === value} aria-controls={key === value ? `${id}-panel` : undefined} tabIndex={key === value ? 0 : -1} onClick={() => onChange(key)}>
            {label}
            {badge !== undefined && <span class={bad ? 'badge bad' : 'badge'}>{badge}</span>}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${value}`}>{children}</div>
    </>
  );
}
