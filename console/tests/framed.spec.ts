// What real pages of other origins can do with a console that their visitor is signed in to, in a real browser.
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { chromium, type BrowserContext, type Page } from '@playwright/test';
import { ADDRESS, DARKROOMS, ORIGIN, darkroom, expect, kubectl, signIn, test as base } from './world';

interface Elsewhere {
  /** Another port of the same address, and the same by another name: another origin, and another site. */
  origins: { port: string; site: string };
  /** Shows a page of one of them. */
  show: (html: string) => void;
}

/** A web server of somebody else. Its pages break the rules of the console's pages, which `console` is not for. */
const test = base.extend<{ elsewhere: Elsewhere; visitor: BrowserContext }>({
  elsewhere: async ({}, use) => {
    let html = '';
    const server = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(html));
    await new Promise<void>((resolve) => server.listen(0, resolve));
    const { port } = server.address() as AddressInfo;
    await use({ origins: { port: `http://127.0.0.1:${port}`, site: `http://localhost:${port}` }, show: (next) => void (html = next) });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  },
  visitor: async ({ browser }, use) => {
    const context = await browser.newContext();
    const page = await context.newPage();
    await signIn(page);
    await use(context);
    await context.close();
  },
});

const OBJECTS = `${ORIGIN}/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces/default`;
const isThere = (name: string) => kubectl('get', 'darkroom', name, '--ignore-not-found', '-o', 'name') !== '';

/** Whether any frame of a page shows something of the console. */
async function shows(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const frame of page.frames().slice(1)) {
    const text = await frame.evaluate(() => document.body?.innerText ?? '').catch(() => '');
    if (/Darkroom|Pintle|Sources|Sign in/i.test(text) || frame.url().startsWith(ORIGIN)) found.push(`${frame.url()}: ${text.slice(0, 80)}`);
  }
  return found;
}

for (const where of ['port', 'site'] as const) {
  test(`a page of another ${where} that frames the console shows nothing of it, however it does`, async ({ elsewhere, visitor }) => {
    const page = await visitor.newPage();
    const refused: string[] = [];
    page.on('console', (message) => message.type() === 'error' && refused.push(message.text()));
    const paths = ['/console/', `${DARKROOMS}/new`, '/console/engine', '/api/v1/kinds', '/darkrooms', '/openapi.json', '/healthz', '/console/no/such/page'];
    elsewhere.show(`<!doctype html><title>elsewhere</title>
      ${paths.map((path) => `<iframe src="${ORIGIN}${path}"></iframe>`).join('')}
      <iframe sandbox="allow-scripts" src="${ORIGIN}/console/"></iframe>
      <object data="${ORIGIN}/console/" type="text/html"></object>
      <embed src="${ORIGIN}/console/" type="text/html">`);
    await page.goto(elsewhere.origins[where], { waitUntil: 'load' });
    // The browser says of each why it shows nothing: else nothing was tried.
    await expect.poll(() => refused.filter((text) => /frame-ancestors|ERR_BLOCKED_BY_RESPONSE|refused to connect|40[13]/.test(text)).length).toBeGreaterThanOrEqual(paths.length);
    expect(page.frames().length).toBeGreaterThan(paths.length);
    expect(await shows(page)).toEqual([]);
    // The same visitor sees it where nobody frames it.
    await page.goto(`${ORIGIN}${DARKROOMS}`);
    await expect(page.getByRole('heading', { level: 1, name: 'All Darkrooms' })).toBeVisible();
  });

  test(`a page of another ${where} can neither write, nor read, nor reach into a window of the console`, async ({ elsewhere, visitor }) => {
    const page = await visitor.newPage();
    elsewhere.show('<!doctype html><title>elsewhere</title>');
    await page.goto(elsewhere.origins[where]);
    const body = JSON.stringify(darkroom(`from-another-${where}`));
    const tried = await page.evaluate(async ({ objects, origin, body }) => {
      const attempt = async (path: string, options: RequestInit): Promise<string> => {
        try {
          const answer = await fetch(path, { credentials: 'include', ...options });
          return `${answer.type} ${(await answer.text()).length}`;
        } catch {
          return 'refused';
        }
      };
      const json = { 'content-type': 'application/json' };
      return {
        // What needs no preflight is sent; its answer nobody may read.
        plain: await attempt(objects, { method: 'POST', mode: 'no-cors', body }),
        plainText: await attempt(objects, { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body }),
        json: await attempt(objects, { method: 'POST', headers: json, body }),
        document: await attempt(`${origin}/darkrooms`, { method: 'POST', headers: json, body }),
        remove: await attempt(`${objects}/darkroom-sample`, { method: 'DELETE' }),
        patch: await attempt(`${objects}/darkroom-sample`, { method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' }, body: '{"metadata":{"labels":{"taken":"yes"}}}' }),
        upload: await attempt(`${origin}/api/v1/modules/inspect`, { method: 'PUT', headers: { 'content-type': 'application/wasm' }, body: 'x' }),
        read: await attempt(`${origin}/api/v1/kinds`, {}),
        session: await attempt(`${origin}/api/v1/session`, {}),
        stream: await attempt(`${origin}/api/v1/stream?watch=pintle.dev/v1alpha1/modules`, {}),
      };
    }, { objects: OBJECTS, origin: ORIGIN, body });
    // No answer that a page could read; an opaque one has nothing in it.
    for (const [what, came] of Object.entries(tried)) expect(['refused', 'opaque 0'], what).toContain(came);

    // A form that is sent as a navigation.
    elsewhere.show(`<!doctype html><form method="post" enctype="text/plain" action="${OBJECTS}"><input name='${body.slice(0, -1)},"x":"' value='"}'></form><script>document.forms[0].submit()</script>`);
    await page.goto(elsewhere.origins[where]).catch(() => undefined);
    await page.waitForURL(OBJECTS);
    expect(isThere(`from-another-${where}`)).toBe(false);
    expect(isThere('darkroom-sample')).toBe(true);
    expect(kubectl('get', 'darkroom', 'darkroom-sample', '-o', 'jsonpath={.metadata.labels.taken}')).toBe('');

    // A window that it opens is cut off from it.
    elsewhere.show('<!doctype html><title>elsewhere</title><button>Open</button>');
    await page.goto(elsewhere.origins[where]);
    await page.evaluate((address) => document.querySelector('button')?.addEventListener('click', () => Object.assign(window, { opened: window.open(address) })), `${ORIGIN}/console/`);
    const [opened] = await Promise.all([visitor.waitForEvent('page'), page.getByRole('button').click()]);
    await expect(opened).toHaveTitle(/Dashboard/);
    expect(await page.evaluate(() => (window as unknown as { opened: Window }).opened.closed), 'its handle leads nowhere').toBe(true);
    expect(await opened.evaluate(() => window.opener)).toBeNull();
  });
}

test('a name of somebody else that leads to this address gets nothing, in a browser that believes it', async ({}, { project }) => {
  const { launchOptions } = project.use;
  const browser = await chromium.launch({ ...launchOptions, args: [...(launchOptions?.args ?? []), '--host-resolver-rules=MAP evil.test 127.0.0.1'] });
  try {
    const rebound = `http://evil.test:${new URL(ORIGIN).port}`;
    const context = await browser.newContext();
    let page = await context.newPage();
    // Also with the secret of the console, which such a page does not know.
    for (const path of ['/console/', `/console/${new URL(ADDRESS).hash}`, '/api/v1/session', '/darkrooms', '/']) {
      page = await context.newPage();
      const answer = await page.goto(rebound + path);
      expect(answer?.status(), path).toBe(421);
      expect(await page.locator('body').innerText(), path).not.toMatch(/Darkroom|Sources/);
    }
    // A page of that name has the origin of what it asks: only the Host tells.
    const statuses = await page.evaluate(async ({ secret, body }) => {
      const json = { 'content-type': 'application/json' };
      const asked = [
        fetch('/api/v1/session', { headers: { authorization: `Bearer ${secret}` } }),
        fetch('/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces/default', { method: 'POST', headers: json, body }),
        fetch('/darkrooms', { method: 'POST', headers: json, body }),
        fetch('/darkrooms/darkroom-sample', { method: 'DELETE' }),
        fetch('/api/v1/stream?watch=pintle.dev/v1alpha1/modules'),
      ];
      return (await Promise.all(asked)).map(({ status }) => status);
    }, { secret: new URL(ADDRESS).hash.slice(1), body: JSON.stringify(darkroom('rebound')) });
    expect(statuses).toEqual([421, 421, 421, 421, 421]);
    expect(isThere('rebound')).toBe(false);
    expect(isThere('darkroom-sample')).toBe(true);
  } finally {
    await browser.close();
  }
});
