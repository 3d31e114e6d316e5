// What the frame around the pages does: the keyboard alone is enough, one stream serves all tabs, and an ended login is asked for once.
import { type Page } from '@playwright/test';
import { DARKROOMS, IN_CLUSTER, MARK, ORIGIN, TOKEN, apply, askMarks, darkroom, expect, kubectl, test } from './world';

const heading = (page: Page, name: string) => page.getByRole('heading', { level: 1, name });
const isLive = (page: Page) => expect(page.getByText('Live', { exact: true })).toBeVisible();

/** Goes to a page by the palette. */
async function goTo(page: Page, title: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.keyboard.type(title.toLowerCase());
  await expect(page.getByRole('dialog').getByRole('option', { selected: true })).toContainText(title);
  await page.keyboard.press('Enter');
  await expect(heading(page, title)).toBeFocused();
}

test('the keyboard alone goes everywhere, and the focus goes along', async ({ console: page }) => {
  await page.goto('/console/engine');
  await expect(heading(page, 'Overview')).toBeVisible();
  await goTo(page, 'Reconcilers');
  await expect(page).toHaveTitle(/Reconcilers/);
  await expect(page.getByRole('link', { name: 'darkroom', exact: true })).toBeVisible();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/engine\/reconcilers\/.+/);
  await page.goBack();
  await expect(heading(page, 'Reconcilers')).toBeFocused();
  await goTo(page, 'Modules');
});

test('what is typed right after the key of a dialog goes into it', async ({ console: page }) => {
  await page.goto('/console/engine');
  await expect(heading(page, 'Overview')).toBeVisible();
  // Keys in one task of the page, as on a machine that is too busy to paint between them.
  const focused = await page.evaluate(async () => {
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
    await Promise.resolve();
    return document.activeElement?.getAttribute('role');
  });
  expect(focused).toBe('combobox');
});

test('what is drawn has its keys, before it is painted', async ({ console: page }) => {
  await page.addInitScript(() => {
    // Called after each task of the page that draws, and before the browser paints.
    const observer = new MutationObserver(() => {
      if (!document.querySelector('main')) return;
      observer.disconnect();
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }));
    });
    observer.observe(document, { subtree: true, childList: true });
  });
  await page.goto('/console/engine');
  await expect(page.getByRole('dialog').getByLabel('Single-letter keys')).toBeVisible();
});

test('whoever goes on with the keyboard at once keeps the focus that it has moved', async ({ console: page }) => {
  const link = page.getByRole('link', { name: 'darkroom-sample', exact: true });
  await page.goto(DARKROOMS);
  await expect(link).toBeVisible();
  await goTo(page, 'Overview');
  // The rows are still known, so that they are drawn with the page, and the next key comes before they are painted.
  await page.evaluate(async (home) => {
    document.querySelector<HTMLAnchorElement>(`nav a[href="${home}"]`)?.click();
    // The page before has tables too.
    const isDrawn = () => document.querySelector('main h1')?.textContent === 'All Darkrooms' && document.querySelector('main tbody tr') !== null;
    await new Promise<void>((resolve) => {
      if (isDrawn()) return resolve();
      // Called after the task that draws, and before the browser paints.
      const observer = new MutationObserver(() => {
        if (!isDrawn()) return;
        observer.disconnect();
        resolve();
      });
      observer.observe(document, { subtree: true, childList: true });
    });
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'j', bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  }, DARKROOMS);
  await expect(page.locator('main tbody tr').first()).toBeFocused();
});

test('j and k go from row to row', async ({ console: page }) => {
  const names = ['by-key-a', 'by-key-b'];
  for (const name of names) apply(darkroom(name));
  const row = (name: string) => page.getByRole('row').filter({ has: page.getByRole('link', { name, exact: true }) });
  await page.goto(`${DARKROOMS}?search=by-key-`);
  for (const name of names) await expect(row(name)).toBeVisible();
  await page.keyboard.press('j');
  await expect(row('by-key-a')).toBeFocused();
  await page.keyboard.press('j');
  await expect(row('by-key-b')).toBeFocused();
  await page.keyboard.press('k');
  await expect(row('by-key-a')).toBeFocused();
  kubectl('delete', 'darkroom', ...names, '--wait=false');
});

test('the palette finds a root by a part of its name', async ({ console: page }) => {
  await page.goto('/console/engine');
  await expect(heading(page, 'Overview')).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('room-sam');
  await page.getByRole('option', { name: /darkroom-sample/ }).first().click();
  await expect(page).toHaveURL(/\/engine\/roots\/.+\/darkroom-sample$/);
});

test('keys are left alone where somebody types, and with the switch off', async ({ console: page }) => {
  await page.goto('/console/engine/events');
  await expect(heading(page, 'Events')).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('c j?/');
  await expect(page.getByRole('dialog').getByRole('combobox')).toHaveValue('c j?/');
  await page.keyboard.press('Escape');
  await expect(heading(page, 'Events')).toBeVisible();

  await page.keyboard.press('?');
  await page.getByRole('dialog').getByLabel('Single-letter keys').uncheck();
  await page.keyboard.press('Escape');
  await page.reload();
  await expect(heading(page, 'Events')).toBeVisible();
  await page.keyboard.press('?');
  // A key with Ctrl is not switched off. That it has done what it does shows that the one before did nothing.
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog').getByRole('combobox')).toBeFocused();
  await expect(page.getByRole('dialog')).toHaveCount(1);
});

test('the secret of the console does not stay in the address, and the theme outlives a reload', async ({ console: page }) => {
  expect(new URL(page.url()).hash).toBe('');
  await page.getByRole('button', { name: 'Dark', exact: true }).click();
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});

test('where a tab signs in by itself, its next visit asks for its first rows before the console has been read', async ({ console: page, context }) => {
  const row = page.getByRole('link', { name: 'darkroom-sample', exact: true });
  await page.goto(DARKROOMS);
  await expect(row).toBeVisible();
  // The rows may be there before it is known who this is, and only then is it kept with what a visit begins.
  await expect.poll(() => page.evaluate(() => sessionStorage.getItem('pintle-ahead'))).toContain(DARKROOMS);
  // Without the console, only the head can ask.
  await context.route('**/main-*.js', (route) => route.abort());
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.reload();
  await expect.poll(() => asked).toEqual(expect.arrayContaining(['/api/v1/session', '/api/v1/objects/deployments.example.com/v1alpha1/darkrooms']));
  await context.unroute('**/main-*.js');
  asked.length = 0;
  await page.reload();
  await expect(row).toBeVisible();
  await isLive(page);
  expect(asked.filter((path) => path === '/api/v1/session'), 'what the head has asked is not asked again').toHaveLength(1);
});

test('a token goes with no request that the head makes, so it makes none', async ({ page }) => {
  await page.goto(IN_CLUSTER);
  await page.getByLabel('Token').fill(TOKEN.editor);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(heading(page, 'Dashboard')).toBeVisible();
  expect(await page.evaluate(() => sessionStorage.getItem('pintle-ahead'))).toBeNull();
});

test('eight tabs are live at once, though a browser opens six connections @smoke', async ({ console: page, context }) => {
  await page.goto('/console/engine/reconcilers');
  await isLive(page);
  for (let tab = 0; tab < 7; tab += 1) {
    const other = await context.newPage();
    await other.goto(`${ORIGIN}/console/engine/reconcilers`);
    await expect(other.getByRole('link', { name: 'darkroom', exact: true })).toBeVisible();
    await isLive(other);
  }
});

test('a login that has ended is asked for once, and the page goes on where it was', async ({ page }) => {
  await page.goto(`${IN_CLUSTER}engine/events`);
  await page.getByLabel('Token').fill(TOKEN.editor);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(heading(page, 'Events')).toBeVisible();

  let refused = 0;
  await page.route('**/api/**', async (route) => {
    if (!route.request().url().endsWith(MARK)) refused += 1;
    const body = { title: 'Unauthorized', status: 401, detail: 'The token has expired.', details: 'The token has expired.', causes: [], mode: 'token' };
    await route.fulfill({ status: 401, contentType: 'application/problem+json', body: JSON.stringify(body) });
  });
  // What a page asks by itself: lists come through the worker, which this route does not see.
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  const dialog = page.getByRole('dialog', { name: 'Sign in again' });
  await expect(dialog).toBeVisible();
  await askMarks(page);
  expect(refused).toBeLessThanOrEqual(8);
  await page.unroute('**/api/**');
  await dialog.getByLabel('Token').fill(TOKEN.editor);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(heading(page, 'Overview')).toBeVisible();
});
