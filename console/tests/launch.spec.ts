// `pintle console` on a machine with several users: what they can see, hear and try, and what its own user notices of it.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { createServer, request as ask, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo } from 'node:net';
import { dirname } from 'node:path';
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

/** What the terminal says, once its line is whole. */
const SIGNED_OUT = /Everybody was signed out.*#\w+\n/;

const isIn = (page: Page) => expect(page.getByRole('navigation').first()).toBeVisible();
const kept = (page: Page) => page.evaluate(() => localStorage.getItem('pintle-token'));

/** What somebody is answered who sends these headers. */
const answered = (origin: string, path: string, headers: IncomingHttpHeaders): Promise<number> =>
  new Promise((resolve, reject) => {
    const asked = ask(origin + path, { headers, agent: false }, (answer) => {
      answer.destroy();
      resolve(answer.statusCode ?? 0);
    });
    asked.on('error', reject).end();
  });

test('the browser is opened by a file that its user alone can read, and stays signed in after it is gone', async ({ launched, browser }) => {
  const launch = await launched();
  const words = await launch.opened();
  expect(words).toHaveLength(1);
  const file = words[0] ?? '';
  const mode = (path: string) => statSync(path).mode & 0o777;
  expect([mode(file), mode(dirname(file))]).toEqual([0o600, 0o700]);
  const secret = /#(\w+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  expect(secret).toHaveLength(64);
  expect(file).not.toContain(secret);
  const printed = launch.address;
  expect(printed).not.toContain(secret);

  const context = await browser.newContext();
  const page = await context.newPage();
  const wrong = watched(page, [launch.origin]);
  await page.goto(`file://${file}`);
  await expect(page).toHaveURL(`${launch.origin}/console/`);
  await isIn(page);
  await expect.poll(() => existsSync(dirname(file))).toBe(false);
  expect(launch.address, 'the address that was printed is as good as before').toBe(printed);

  await page.reload();
  await isIn(page);
  const second = await context.newPage();
  await second.goto(`${launch.origin}/console/engine`);
  await isIn(second);
  await page.goBack().catch(() => null);
  expect(page.url(), 'the file is not in the history').not.toContain('file:');
  expect(wrong, 'the page broke a rule').toEqual([]);
  await context.close();
});

test('a file that no browser has read is gone with the console', async ({ launched }) => {
  const launch = await launched();
  const file = (await launch.opened())[0] ?? '';
  expect(existsSync(file)).toBe(true);
  await launch.end();
  expect(existsSync(dirname(file))).toBe(false);
});

test('the cookie that another port of this machine is sent opens nothing', async ({ launched, browser }) => {
  const launch = await launched('--no-open');
  const heard: IncomingHttpHeaders[] = [];
  const other = createServer((asked, answer) => {
    heard.push(asked.headers);
    answer.setHeader('content-type', 'text/html').end('<title>elsewhere</title>');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(launch.address);
  await isIn(page);
  const elsewhere = await context.newPage();
  await elsewhere.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
  const { cookie } = heard[0] ?? {};
  expect(cookie, 'it is sent: else nothing is tried').toContain(`pintle-console-${new URL(launch.origin).port}=`);
  expect(heard[0]?.authorization).toBeUndefined();
  expect(await kept(elsewhere), 'what the page keeps is not for other ports').toBeNull();

  const paths = ['/api/v1/session', '/api/v1/kinds', '/darkrooms', '/api/v1/stream?watch=pintle.dev%2Fv1alpha1%2Fmodules'];
  const token = `Bearer ${await kept(page)}`;
  for (const path of paths) {
    expect(await answered(launch.origin, path, { cookie }), path).toBe(401);
    expect(await answered(launch.origin, path, { cookie, authorization: `Bearer ${cookie?.split('=')[1]}` }), path).toBe(401);
    expect(await answered(launch.origin, path, { authorization: token }), path).toBe(401);
  }
  expect(await answered(launch.origin, paths[0] ?? '', { cookie, authorization: token })).toBe(200);
  await page.reload();
  await isIn(page);
  await context.close();
  other.closeAllConnections();
  await new Promise((resolve) => other.close(resolve));
});

test('an address that is opened twice signs everybody out, and both the page and the terminal say how to go on', async ({ launched, browser }) => {
  const launch = await launched('--no-open');
  const [ours, theirs] = [await browser.newContext(), await browser.newContext()];
  const [page, thief] = [await ours.newPage(), await theirs.newPage()];
  const wrong = watched(page, [launch.origin]);
  const stolen = launch.address;
  await page.goto(stolen);
  await isIn(page);
  await page.goto(`${launch.origin}/console/engine/events`);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await expect.poll(() => launch.address).not.toBe(stolen);
  const next = launch.address;

  await thief.goto(stolen);
  await expect(thief.getByText('opened before')).toBeVisible();
  expect([await kept(thief), await theirs.cookies()]).toEqual([null, []]);
  await expect.poll(() => launch.said).toMatch(SIGNED_OUT);
  expect(launch.address).not.toBe(next);

  // The stream ends with the login, so that a page finds out where nobody does anything.
  const dialog = page.getByRole('dialog', { name: 'Sign in again' });
  await expect(dialog).toContainText('pintle console');
  await expect.poll(() => kept(page)).toBeNull();
  await dialog.getByLabel('Address or secret').fill(next);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await expect(dialog.getByRole('alert'), 'the address before is no longer good').toContainText('printed last');
  await dialog.getByLabel('Address or secret').fill(launch.address);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole('heading', { level: 1, name: 'Events' })).toBeVisible();
  await expect(page.getByText('Live', { exact: true })).toBeVisible();

  // Who comes back with nothing is told what to do.
  await thief.goto(`${launch.origin}/console/`);
  await expect(thief.getByText('printed last').first()).toBeVisible();
  expect(wrong, 'the page broke a rule').toEqual([]);
  await ours.close();
  await theirs.close();
});

test('a link that is followed twice in one browser signs nobody out', async ({ launched, browser }) => {
  const launch = await launched('--no-open');
  const context = await browser.newContext();
  const page = await context.newPage();
  const used = launch.address;
  await page.goto(used);
  await isIn(page);
  await expect.poll(() => launch.address).not.toBe(used);
  const good = launch.address;
  const second = await context.newPage();
  await second.goto(used);
  await isIn(second);
  expect(new URL(second.url()).hash).toBe('');
  // Neither does one that is good, and it stays so for another browser.
  await second.goto(good);
  await isIn(second);
  await page.reload();
  await isIn(page);
  await context.close();
  // What it had to say, it has said when it has ended.
  await launch.end();
  expect(launch.address).toBe(good);
  expect(launch.said).not.toMatch(SIGNED_OUT);
});

test('a tab that is open goes on when its user signs in anew in another', async ({ launched, browser }) => {
  const launch = await launched('--no-open');
  const [ours, theirs] = [await browser.newContext(), await browser.newContext()];
  const [page, thief] = [await ours.newPage(), await theirs.newPage()];
  const stolen = launch.address;
  await page.goto(stolen);
  await isIn(page);
  await page.goto(`${launch.origin}/console/engine/events`);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await thief.goto(stolen);
  await expect.poll(() => launch.said).toMatch(SIGNED_OUT);
  const dialog = page.getByRole('dialog', { name: 'Sign in again' });
  await expect(dialog).toBeVisible();
  const second = await ours.newPage();
  await second.goto(launch.address);
  await isIn(second);
  await expect(dialog).toHaveCount(0);
  await expect(page.getByText('Live', { exact: true })).toBeVisible();
  await ours.close();
  await theirs.close();
});
