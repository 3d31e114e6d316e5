// Runs in the head, while the console itself is still being read: the theme, so that a page that is to be dark never flashes, and the
// requests with which visits begin, so that their answers are there when the console is. The build puts it into the page, whose policy has
// its hash. It stands in a block because it is no module, which would run too late: nothing of it is to be global.
import type { Ahead, Kept } from './lib/ahead';

{
  const KEY = 'pintle-ahead';
  const TOKEN = 'pintle-token';

  const read = (storage: 'localStorage' | 'sessionStorage', key: string): string | null => {
    try {
      return window[storage].getItem(key);
    } catch {
      // Storage is forbidden.
      return null;
    }
  };
  // Where nothing can be kept, every visit begins as the first.
  const write = (key: string, value: string | null): void => {
    try {
      if (value === null) sessionStorage.removeItem(key);
      else sessionStorage.setItem(key, value);
    } catch {
      // It lasts as long as the page.
    }
  };
  const parse = (text: string): Kept | null => {
    try {
      return JSON.parse(text) as Kept | null;
    } catch {
      return null;
    }
  };

  const theme = read('localStorage', 'pintle-theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;

  const ahead: Ahead = {
    kept: parse(read('sessionStorage', KEY) ?? 'null'),
    token: read('sessionStorage', TOKEN),
    asked: new Map(),
    keep: (kept) => write(KEY, kept && JSON.stringify(kept)),
    keepToken(token) {
      ahead.token = token;
      write(TOKEN, token);
    },
  };
  window.pintleAhead = ahead;

  // With a fragment, somebody signs in first. What is narrowed down may be further down in the list.
  const ofPage = location.search === '' ? ahead.kept?.of?.[location.pathname] : undefined;
  for (const path of location.hash === '' && ahead.token ? [ahead.kept?.all, ofPage].flat() : []) {
    if (!path?.startsWith('/api/')) continue;
    const asked = fetch(path, { headers: { accept: 'application/json', authorization: `Bearer ${ahead.token}` }, credentials: 'same-origin' });
    // Whatever goes wrong is said where the answer is looked for, if it is.
    asked.catch(() => undefined);
    ahead.asked.set(path, asked);
  }
}
