import { actions, setSingleKeys, singleKeys } from '../lib/keys';
import { Dialog } from '../ui/dialog';
import { Switch } from '../ui/inputs';

const FIXED = [
  ['Ctrl K', 'Go to anything, do anything', 'Anywhere'],
  ['Esc', 'Close what is open, empty a search', 'Anywhere'],
  ['Enter', 'Open the row', 'In tables'],
  ['Home', 'The first row', 'In tables'],
  ['End', 'The last row', 'In tables'],
] as const;

/** Everything that keys do, as the registry has it now. */
export function Help({ onClose }: { onClose: () => void }) {
  const groups = new Map<string, [keys: string, title: string][]>();
  const add = (group: string, keys: string, title: string) => groups.set(group, [...(groups.get(group) ?? []), [keys, title]]);
  for (const { key, title, group } of actions.value) if (key) add(group, key, title);
  for (const [keys, title, group] of FIXED) add(group, keys, title);
  return (
    <Dialog title="Keyboard" onClose={onClose} wide>
      <div class="help-groups">
        {[...groups].map(([group, entries]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl class="help-keys">
              {entries.map(([keys, title]) => [
                <dt key={keys}>{keys.split(' ').map((key, index) => <kbd key={index}>{key}</kbd>)}</dt>,
                <dd key={`${keys}=`}>{title}</dd>,
              ])}
            </dl>
          </section>
        ))}
      </div>
      <Switch checked={singleKeys.value} onChange={setSingleKeys}>Single-letter keys</Switch>
      <p class="help">Off, only keys with Ctrl or Cmd and those of the browser do anything. Keys never act while you type.</p>
    </Dialog>
  );
}
