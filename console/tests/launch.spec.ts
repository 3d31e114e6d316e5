// `pintle console`: how its user signs in, and for how long.
import { type Page } from '@playwright/test';
import { Launch } from './launch';
import { expect, test as base, watched } from './world';

/** Starts a console of its own, and ends it with the test. */
const test = base.extend<{ launched: (...words: string[]) => Promise<Launch> }>({
  launched: async ({}, use) => {
    const launches: Launch[] = [];
    await use(async (...words) => {
      const launch = await Launch.start(...words);
      launches.push(launch);
      return launch;
    });
    for (const launch of launches) await launch.stop();
  },
});

const isIn = (page: Page) => expect(page.getByRole('navigation').first()).toBeVisible();

test('the address opens any number of browsers, in all their tabs, and is no longer seen in them', async ({ launched, browser }) => {
  const launch = await launched();
  for (const context of [await browser.newContext(), await browser.newContext()]) {
    const page = await context.newPage();
    const wrong = watched(page, [launch.origin]);
    await page.goto(launch.address);
    await isIn(page);
    await expect(page).toHaveURL(`${launch.origin}/console/`);
    await page.reload();
    await isIn(page);
    const second = await context.newPage();
    await second.goto(`${launch.origin}/console/engine`);
    await isIn(second);
    expect(await context.cookies()).toEqual([]);
    expect(wrong, 'the page broke a rule').toEqual([]);
    await context.close();
  }
});

test('who was signed in to a console that was started anew signs in anew, on a page and in no dialog', async ({ launched, browser }) => {
  const first = await launched();
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(first.address);
  await isIn(page);
  await first.end();
  const second = await launched('--port', new URL(first.origin).port);
  await page.reload();
  await expect(page.getByLabel('Address or secret')).toBeVisible();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.getByLabel('Address or secret').fill(first.address);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('printed');
  await page.getByLabel('Address or secret').fill(second.address);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await isIn(page);
  await context.close();
});

test('a browser is opened for whoever asks for one', async ({ launched }) => {
  const launch = await launched('--open');
  expect(await launch.opened()).toEqual([launch.address]);
});
