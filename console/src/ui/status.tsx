import { Icon, type IconName } from './icon';
import { iconOf, type Stateful, stateOf, type Tone } from './conditions';

type StatusProps = { pill?: boolean | undefined; title?: string | undefined } & (
  | { row: Stateful }
  | { tone: Tone; label: string; icon?: IconName | undefined }
);

/** A state: an icon and its word, in its colour. */
export function Status(props: StatusProps) {
  const shown = 'row' in props ? stateOf(props.row) : { tone: props.tone, label: props.label, icon: props.icon ?? iconOf(props.tone), why: '' };
  return (
    <span class={`status tone-${shown.tone}${props.pill ? ' pill' : ''}`} title={props.title ?? (shown.why || undefined)}>
      <Icon name={shown.icon} />
      <span>{shown.label}</span>
    </span>
  );
}
