// The navigation: the systems first, then the engine.
import { useCan } from '../lib/can';
import { listableKinds, titleOf } from '../lib/kinds';
import { homeOf } from '../lib/paths';
import { BASE, href, route } from '../lib/router';
import { Icon, type IconName } from '../ui/icon';
import { Segment } from '../ui/inputs';
import { setTheme, type Theme, theme } from '../lib/theme';
import { Mark } from './mark';

interface Entry {
  title: string;
  path: string;
  icon: IconName;
  /** Below which its pages are. */
  below?: string[];
}

const ENGINE: Entry[] = [
  { title: 'Overview', path: '/engine', icon: 'activity' },
  { title: 'Reconcilers', path: '/engine/reconcilers', icon: 'refresh', below: ['/engine/reconcilers/', '/engine/roots/'] },
  { title: 'Modules', path: '/engine/modules', icon: 'module', below: ['/engine/modules/'] },
  { title: 'Views', path: '/engine/views', icon: 'eye', below: ['/engine/views/'] },
  { title: 'Events', path: '/engine/events', icon: 'clock' },
];

/** The entries of the systems: those whose objects the user may list. */
export function systems(): Entry[] {
  const entries = listableKinds().map((kind): Entry => {
    const path = homeOf(kind).replace(BASE, '');
    return { title: titleOf(kind), path, icon: 'box', below: [`${path}/`] };
  });
  return [{ title: 'Dashboard', path: '/', icon: 'dashboard' }, ...entries];
}

/** The entries of the engine, without those of kinds that the user may not list. */
export function useEngine(): Entry[] {
  const may = new Map(['reconcilers', 'modules', 'views'].map((resource) => [`/engine/${resource}`, useCan({ verb: 'list', group: 'pintle.dev', resource }).value]));
  return ENGINE.filter(({ path }) => may.get(path) !== false);
}

function isCurrent({ path, below = [] }: Entry, at: string): boolean {
  const plain = at.length > 1 ? at.replace(/\/$/, '') : at;
  return plain === path || below.some((prefix) => plain.startsWith(prefix));
}

function Entries({ title, entries }: { title: string; entries: Entry[] }) {
  const at = route.value.path;
  return (
    <div class="nav-group">
      <h2 class="nav-title">{title}</h2>
      <ul class="plain">
        {entries.map((entry) => (
          <li key={entry.path}>
            <a href={href(entry.path)} aria-current={isCurrent(entry, at) ? 'page' : undefined}>
              <Icon name={entry.icon} />
              <span class="cut">{entry.title}</span>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

const THEMES = [{ value: 'system', label: 'System' }, { value: 'light', label: 'Light' }, { value: 'dark', label: 'Dark' }];

export function Nav({ label = 'Main' }: { label?: string }) {
  return (
    <nav class="nav" aria-label={label}>
      <a class="brand" href={href('/')}><Mark /><span>Pintle</span></a>
      <div class="nav-scroll">
        <Entries title="Systems" entries={systems()} />
        <Entries title="Engine" entries={useEngine()} />
      </div>
      <div class="nav-foot">
        <Segment label="Theme" value={theme.value} options={THEMES} onChange={(value) => setTheme(value as Theme)} />
      </div>
    </nav>
  );
}
