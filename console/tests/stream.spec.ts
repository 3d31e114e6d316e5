// The stream on a real host: cut, it says so and goes on where it was; too old, it reads anew; asleep, it costs nothing and wakes up.
import { type Page } from '@playwright/test';
import { DARKROOMS as HOME, MARK, ORIGIN, apply, askMarks, bearer, darkroom, expect, kubectl, test, untilServed } from './world';
import { type Wire } from './wire';

const LIST = `${HOME}?search=`;
const STREAM = /^GET \/api\/v1\/stream\?/;
const DARKROOMS = /^GET \/api\/v1\/objects\/deployments\.example\.com\/v1alpha1\/darkrooms\?/;
/** The watch of all Darkrooms, from a version on. */
const RESUMED = /darkrooms%3BresourceVersion%3D\d+/;

const isLive = (page: Page) => expect(page.getByText('Live', { exact: true })).toBeVisible();
const link = (page: Page, name: string) => page.getByRole('main').getByRole('link', { name, exact: true });
const remove = (...names: string[]) => kubectl('delete', 'darkroom', ...names, '--ignore-not-found', '--wait=false');

/**
 * Waits until the page is at rest: its stream has all that it wants to be told of, and nothing else is on its way. Before that it says that
 * it is live, too, since it follows what it has listed so far.
 */
async function follows(page: Page, wire: Wire): Promise<void> {
  await isLive(page);
  const last = () => wire.asked(STREAM).at(-1);
  await expect.poll(() => `${last()?.status} ${last()?.path}`).toMatch(/^200 (?=.*darkrooms%3BresourceVersion%3D\d)(?=.*reconcilers%3BresourceVersion%3D\d)/);
  await expect.poll(() => wire.passed.filter(({ status, isOver }) => status === 0 && !isOver).map(({ path }) => path)).toEqual([]);
}

/** Cuts the wire while something happens in the cluster that the page cannot know of. */
async function meanwhile(page: Page, wire: Wire, happens: () => void): Promise<void> {
  wire.cut();
  await expect(page.getByText('Not live', { exact: true })).toBeVisible();
  await expect(page.locator('.banner')).toContainText('What is shown may be out of date');
  happens();
  wire.forget();
}

test('a stream that is cut says so, and afterwards goes on where it was, without a list made anew', async ({ wired: page, wire }) => {
  apply(darkroom('cut-before'));
  await page.goto(`${LIST}cut-`);
  await expect(link(page, 'cut-before')).toBeVisible();
  await follows(page, wire);
  await meanwhile(page, wire, () => {
    apply(darkroom('cut-after'));
    kubectl('delete', 'darkroom', 'cut-before');
  });
  // What is known stays to be read.
  await expect(link(page, 'cut-before')).toBeVisible();
  wire.mend();
  await expect(link(page, 'cut-after')).toBeVisible();
  await expect(link(page, 'cut-before')).toHaveCount(0);
  await isLive(page);
  await expect(page.locator('.banner')).toHaveCount(0);
  expect(wire.asked(STREAM).some(({ path }) => RESUMED.test(path)), 'the stream goes on from a version').toBe(true);
  expect(wire.asked(DARKROOMS), 'the list is not made anew').toEqual([]);
  remove('cut-after');
});

test('whoever does not want to wait tries at once, and the page of an object follows too', async ({ wired: page, wire }) => {
  apply(darkroom('cut-one'));
  await alone(page);
  await page.goto(`${HOME}/default/cut-one?tab=yaml`);
  await expect(page.getByText('https://example.com/images')).toBeVisible();
  await isLive(page);
  await meanwhile(page, wire, () => kubectl('patch', 'darkroom', 'cut-one', '--type=merge', '-p', '{"spec":{"source":{"baseUrl":"https://example.com/moved"}}}'));
  // The page's clock stands still from here on, so that it does not try by itself, and each attempt that fails makes the next pause longer.
  await page.clock.pauseAt(await page.evaluate(() => Date.now() + 3_600_000));
  await expect(async () => {
    await page.clock.runFor('00:31');
    await expect(page.locator('.banner')).toContainText(/in about (15|[23]\d) seconds/, { timeout: 1_000 });
  }).toPass();
  wire.mend();
  await page.getByRole('button', { name: 'Try now' }).click();
  // Its own next attempt is five seconds away and more.
  await page.clock.runFor(1_000);
  await expect.poll(() => wire.asked(STREAM).length, { message: 'it has tried at once' }).toBeGreaterThan(0);
  await page.clock.resume();
  await expect(page.getByText('https://example.com/moved')).toBeVisible();
  await isLive(page);
  remove('cut-one');
});

test('a position that is too old is said by the host, and the page reads what there is now', async ({ wired: page, wire }) => {
  apply(darkroom('old-before'));
  await page.goto(`${LIST}old-`);
  await expect(link(page, 'old-before')).toBeVisible();
  await follows(page, wire);
  await meanwhile(page, wire, () => {
    apply(darkroom('old-after'));
    kubectl('delete', 'darkroom', 'old-before');
  });
  // The first version of all has long been compacted, or never was one of this kind.
  let made = 0;
  wire.rewrite = (path) => {
    // A stream that is opened anew before it was read has told the page nothing.
    if (wire.asked(DARKROOMS).length > 0 || !STREAM.test(`GET ${path}`) || !RESUMED.test(path)) return path;
    made += 1;
    return path.replaceAll(/resourceVersion%3D\d+/g, 'resourceVersion%3D1');
  };
  wire.mend();
  await expect(link(page, 'old-after')).toBeVisible();
  await expect(link(page, 'old-before')).toHaveCount(0);
  await isLive(page);
  expect(made).toBeGreaterThan(0);
  const aged = wire.asked(/darkrooms%3BresourceVersion%3D1(&|%3B|$)/);
  expect(aged.map(({ body }) => body).join('')).toContain('event: reset');
  expect(wire.asked(DARKROOMS).length, 'the list is made anew').toBeGreaterThan(0);
  // From then on it is live again.
  kubectl('patch', 'darkroom', 'old-after', '--type=merge', '-p', '{"metadata":{"annotations":{"pintle.dev/suspend":"true"}}}');
  await expect(page.getByRole('main').locator('.status').filter({ hasText: 'Suspended' })).toBeVisible();
  remove('old-after');
});

test('a tab that nobody sees closes its stream, and reads anew when somebody looks after a long time', async ({ wired: page, wire }) => {
  apply(darkroom('slept-before'));
  await alone(page);
  await page.goto(`${LIST}slept-`);
  await expect(link(page, 'slept-before')).toBeVisible();
  await follows(page, wire);
  await look(page, false);
  await page.clock.fastForward('00:31');
  await expect(page.getByText('Paused', { exact: true })).toBeVisible();
  wire.forget();
  apply(darkroom('slept-after'));
  kubectl('delete', 'darkroom', 'slept-before');
  await page.clock.fastForward('10:00');
  await askMarks(page);
  expect(wire.passed.map(({ path }) => path).filter((path) => path !== MARK), 'nothing is asked while nobody looks').toEqual([]);
  await expect(link(page, 'slept-after')).toHaveCount(0);
  await look(page, true);
  await expect(link(page, 'slept-after')).toBeVisible();
  await expect(link(page, 'slept-before')).toHaveCount(0);
  await isLive(page);
  expect(wire.asked(DARKROOMS).length, 'after so long the list is made anew').toBeGreaterThan(0);
  remove('slept-after');
});

test('a machine that was asleep notices that its stream is dead, though nobody has told it', async ({ wired: page, wire }) => {
  apply(darkroom('woken-before'));
  await alone(page);
  await page.goto(`${LIST}woken-`);
  await expect(link(page, 'woken-before')).toBeVisible();
  await follows(page, wire);
  // Connections of a machine that sleeps end without a word: nothing comes any more, and nothing says so.
  wire.freeze();
  wire.forget();
  apply(darkroom('woken-after'));
  await page.clock.fastForward('08:00:00');
  await expect(link(page, 'woken-after')).toBeVisible();
  await isLive(page);
  expect(wire.asked(STREAM).length).toBeGreaterThan(0);
  remove('woken-before', 'woken-after');
});

/** From the next address on the page has its clock in the hands of the test, and its stream to itself: a SharedWorker has a clock of its own. */
async function alone(page: Page): Promise<void> {
  await page.clock.install();
  await page.addInitScript(() => Object.defineProperty(window, 'SharedWorker', { value: undefined }));
}

/** Shows the tab, or hides it, as far as the page can tell. */
async function look(page: Page, isSeen: boolean): Promise<void> {
  await page.evaluate((isSeen) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => !isSeen });
    document.dispatchEvent(new Event('visibilitychange'));
  }, isSeen);
}

test('documents are followed from the last event on, after a connection that was cut', async ({ wired: page, wire }) => {
  apply(darkroom('followed'));
  await untilServed(page);
  wire.adds = await bearer(page);
  await page.evaluate(() => {
    const heard: string[] = [];
    Object.assign(window, { heard });
    const stream = new EventSource('/darkrooms?watch=true&namespace=default');
    for (const name of ['added', 'modified', 'deleted', 'bookmark', 'reset']) {
      stream.addEventListener(name, (event: MessageEvent<string>) => heard.push(`${name} ${(JSON.parse(event.data) as { name?: string }).name ?? ''}`.trim()));
    }
  });
  const heard = () => page.evaluate(() => (window as unknown as { heard: string[] }).heard);
  await expect.poll(heard).toContain('added followed');
  await expect.poll(heard).toContain('bookmark');
  wire.cut();
  wire.forget();
  kubectl('patch', 'darkroom', 'followed', '--type=merge', '-p', '{"spec":{"source":{"baseUrl":"https://example.com/moved"}}}');
  apply(darkroom('followed-too'));
  wire.mend();
  await expect.poll(heard).toContain('added followed-too');
  expect(await heard()).toContain('modified followed');
  // Nothing is told twice: it went on, and did not begin again.
  expect((await heard()).filter((one) => one === 'added followed')).toHaveLength(1);
  const again = wire.asked(/^GET \/darkrooms\?watch/).at(-1);
  expect(again?.headers['last-event-id']).toBeTruthy();
  remove('followed', 'followed-too');
});

test('documents from a version that is too old, or was never given, begin anew', async ({ console: page }) => {
  await untilServed(page);
  const shown = await bearer(page);
  const { resourceVersion } = (await (await page.request.get(`${ORIGIN}/darkrooms?limit=1`, { headers: shown })).json()) as { resourceVersion: string };
  // A version ends with six digits of the View's epoch.
  for (const version of [`1${resourceVersion.slice(-6)}`, '1']) {
    const told = await page.evaluate(async ({ version, shown }) => {
      const answer = await fetch('/darkrooms?watch=true', { headers: { ...shown, accept: 'text/event-stream', 'last-event-id': version } });
      const reader = answer.body?.getReader();
      let text = `${answer.status} `;
      for (;;) {
        const piece = await reader?.read();
        if (!piece || piece.done) return text;
        text += new TextDecoder().decode(piece.value);
        if (!/event: (added|bookmark)/.test(text)) continue;
        await reader?.cancel();
        return text;
      }
    }, { version, shown });
    expect(told, version).toContain('event: reset');
    expect(told, version).not.toContain('event: added');
  }
});
