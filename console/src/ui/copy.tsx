import { useState } from 'preact/hooks';
import { IconButton } from './button';
import { toast } from './toast';

/** A text that is worth copying: a digest, an address. */
export function CopyText({ text, shown, what }: { text: string; shown?: string | undefined; what: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    } catch {
      toast('The browser did not allow copying.', 'bad');
    }
  };
  return (
    <span class="copy">
      <span class="text mono" title={text}>{shown ?? text}</span>
      <IconButton small icon={isDone ? 'check' : 'copy'} label={isDone ? 'Copied' : `Copy ${what}`} onClick={() => void copy()} />
    </span>
  );
}
