import { IconButton } from './button';
import { Icon } from './icon';
import { iconOf } from './conditions';
import { dismiss, news } from './toast';

/** Where the news stand: the frame of the pages has one. */
export function Toaster() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {news.value.map(({ id, message, tone }) => (
        <div key={id} class="toast">
          <Icon name={iconOf(tone)} class={`tone-${tone}`} />
          <span>{message}</span>
          <IconButton icon="cross" label="Dismiss" small onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
