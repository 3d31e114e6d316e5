// The bar above the pages: where this is, who one is, and whether what is shown is live.
import { useEffect, useRef } from 'preact/hooks';
import { announced } from '../lib/router';
import { askAgain, expired, session, signOut } from '../lib/session';
import type { StreamState } from '../lib/hub';
import { post, stream } from '../lib/stream';
import { now } from '../ui/age';
import { Button, IconButton } from '../ui/button';
import type { Tone } from '../ui/conditions';
import { Icon, type IconName } from '../ui/icon';
import { Status } from '../ui/status';

const isApple = /Mac|iPhone|iPad/.test(navigator.platform);

const STREAMS: Partial<Record<StreamState['state'], { tone: Tone; label: string; icon?: IconName; title?: string }>> = {
  open: { tone: 'ok', label: 'Live', icon: 'activity', title: 'What is shown follows the cluster.' },
  opening: { tone: 'muted', label: 'Connecting', icon: 'refresh' },
  hidden: { tone: 'muted', label: 'Paused', icon: 'pause', title: 'No tab was visible.' },
  waiting: { tone: 'warn', label: 'Not live', title: 'The connection to the host failed.' },
  'signed-out': { tone: 'warn', label: 'Signed out', icon: 'lock' },
};

function StreamStatus() {
  const { state, problem } = stream.value;
  const shown = STREAMS[state];
  return shown ? <Status {...shown} title={(state === 'waiting' && problem?.detail) || shown.title} /> : null;
}

/** Says, over the page, that what is shown is no longer live, and offers the way out. */
export function ConnectionBanner() {
  const { state, problem, retryAt } = stream.value;
  const isWaiting = state === 'waiting';
  const why = (problem?.detail || 'The connection to the host is lost').replace(/[^.]$/, '$&.');
  const before = useRef(state);
  useEffect(() => {
    if (before.current !== state) {
      if (isWaiting) announced.value = `${why} What is shown may be out of date.`;
      if (state === 'open' && before.current === 'waiting') announced.value = 'Connected again.';
    }
    if (state !== 'opening') before.current = state;
  }, [state]);
  if (expired.value && !expired.value.isAsking) {
    return (
      <div class="banner">
        <Icon name="lock" />
        <span>You are signed out. What is shown is as it was then.</span>
        <Button small onClick={askAgain}>Sign in</Button>
      </div>
    );
  }
  if (!isWaiting) return null;
  const seconds = retryAt === null ? 0 : Math.max(0, Math.round((retryAt - now.value) / 1000));
  return (
    <div class="banner">
      <Icon name="alert" />
      <span>{why} What is shown may be out of date; trying again{seconds > 5 ? ` in about ${Math.ceil(seconds / 5) * 5} seconds` : ' soon'}.</span>
      <Button small icon="refresh" onClick={() => post({ type: 'retry' })}>Try now</Button>
    </div>
  );
}

function UserMenu({ onHelp }: { onHelp: () => void }) {
  const who = session.value;
  const menu = useRef<HTMLDivElement>(null);
  if (!who) return null;
  return (
    <>
      <button type="button" class="btn quiet user" popovertarget="user-menu" title={who.user.name}>
        <span class="avatar" aria-hidden="true">{(who.user.name.split(':').pop() ?? '?').slice(0, 1).toUpperCase()}</span>
        <span class="cut">{who.user.name.split(':').pop()}</span>
        <Icon name="chevron" />
      </button>
      <div id="user-menu" class="popover" popover="auto" ref={menu} role="dialog" aria-label="You and this console">
        <dl class="kv">
          <dt>User</dt><dd>{who.user.name}</dd>
          {who.user.groups.length > 0 && <><dt>Groups</dt><dd>{who.user.groups.join(', ')}</dd></>}
          <dt>Cluster</dt><dd>{who.cluster}</dd>
          {who.context && <><dt>Context</dt><dd>{who.context}</dd></>}
          {who.expires && <><dt>Until</dt><dd>{new Date(who.expires).toLocaleString()}</dd></>}
          <dt>Pintle</dt><dd>{who.version}</dd>
        </dl>
        <div class="toolbar">
          <Button small icon="keyboard" onClick={() => {
            menu.current?.hidePopover();
            onHelp();
          }}>Keyboard</Button>
          {who.mode === 'token' && <Button small icon="out" onClick={signOut}>Sign out</Button>}
        </div>
      </div>
    </>
  );
}

export function TopBar({ onMenu, onPalette, onHelp }: { onMenu: () => void; onPalette: () => void; onHelp: () => void }) {
  const who = session.value;
  return (
    <header class="topbar">
      <span class="only-narrow"><IconButton icon="menu" label="Menu" onClick={onMenu} /></span>
      <span class="where cut" title={who?.context ? `${who.context} · ${who.cluster}` : who?.cluster}>
        <span class="sr-only">Cluster: </span>
        <strong>{who?.context ?? who?.cluster}</strong>
        {who?.context && who.context !== who.cluster && <span class="muted"> {who.cluster}</span>}
      </span>
      <span class="spacer" />
      <StreamStatus />
      <button type="button" class="btn find" onClick={onPalette} aria-keyshortcuts={isApple ? 'Meta+K' : 'Control+K'}>
        <Icon name="search" />
        <span class="says">Go to</span>
        <kbd aria-hidden="true">{isApple ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      <UserMenu onHelp={onHelp} />
    </header>
  );
}
