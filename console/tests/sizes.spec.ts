// Objects as large and as strange as the API server takes them: every page that shows one stays a page.
import { type Page } from '@playwright/test';
import { DARKROOMS, apply, create, expect, kubectl, replaceStatus, test, until } from './world';

const GROUP = 'sizes.example.com';
const NAMESPACE = 'default';

/** A kind that nobody reconciles, and whose objects may hold anything. */
const BURDENS = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `burdens.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { kind: 'Burden', plural: 'burdens', singular: 'burden', listKind: 'BurdenList' },
    versions: [{
      name: 'v1', served: true, storage: true, subresources: { status: {} },
      schema: {
        openAPIV3Schema: {
          type: 'object',
          properties: {
            spec: {
              type: 'object',
              'x-kubernetes-preserve-unknown-fields': true,
              properties: { title: { type: 'string' }, text: { type: 'string' }, words: { type: 'array', items: { type: 'string' } }, labels: { type: 'object', additionalProperties: { type: 'string' } }, things: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } } },
            },
            status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
        },
      },
    }],
  },
};

const burden = (name: string, spec: unknown, metadata: object = {}) => ({ apiVersion: `${GROUP}/v1`, kind: 'Burden', metadata: { name, namespace: NAMESPACE, ...metadata }, spec });
const condition = (type: string, status: string, reason: string, message: string) => ({ type, status, reason, message, lastTransitionTime: '2026-01-01T00:00:00Z' });

const MEGABYTE = 1_000_000;
/** Written from right to left, and what turns the direction of whatever stands around it, if it is let. */
const ARABIC = 'مصدر الصور غير متاح';
const HEBREW = 'שלום, עולם';
const TURNED = `${ARABIC} \u202Egnp.exe\u2066 \u202D${HEBREW}`;

const remove = (...words: string[]) => {
  kubectl('delete', 'events.events.k8s.io', 'turned.1', '-n', NAMESPACE, '--ignore-not-found');
  kubectl('delete', 'crd', `burdens.${GROUP}`, '--ignore-not-found', ...words);
};

test.beforeAll(async () => {
  // Runs anew after a test that failed, when everything is still there, or about to go.
  remove();
  apply(BURDENS);
  await until('the kind is served', () => kubectl('api-resources', `--api-group=${GROUP}`, '-o', 'name'), (names) => names.includes('burdens'));
  // Forms and lists are made of what is published, which comes later.
  await until('its schema is published', () => kubectl('get', '--raw', `/openapi/v3/apis/${GROUP}/v1`), (document) => /"kind": *"Burden"/.test(document));
  create(burden('megabyte', { title: 'A megabyte in one word', text: 'x'.repeat(MEGABYTE) }));
  create(burden('wordy', { title: 'word '.repeat(40_000), words: Array.from({ length: 20_000 }, (_, at) => `word-${at}`), labels: Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`key-${at}`, `value-${at}`])), things: Array.from({ length: 5_000 }, (_, at) => ({ name: `thing-${at}` })) }));
  create(burden('loud', { title: 'Loud conditions' }));
  replaceStatus(burden('loud', {}), {
    conditions: [condition('Ready', 'False', 'R'.repeat(300_000), 'm'.repeat(200_000)), condition('T'.repeat(300_000), 'True', 'Because', 'word '.repeat(40_000))],
  });
  create(burden('crowd', { title: 'Ten thousand conditions' }));
  replaceStatus(burden('crowd', {}), { conditions: [condition('Ready', 'False', 'Crowded', 'There are many.'), ...Array.from({ length: 9_999 }, (_, at) => condition(`C${at}`, 'True', 'R', ''))] });
  create(burden('turned', { title: TURNED, text: TURNED, words: [TURNED, HEBREW], labels: { [TURNED]: TURNED } }, { annotations: { 'example.com/note': TURNED } }));
  replaceStatus(burden('turned', {}), { conditions: [condition('Ready', 'False', TURNED, TURNED), condition(TURNED, 'True', TURNED, TURNED), condition('Degraded', 'Unknown', 'R', TURNED)] });
  create({
    apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'turned.1', namespace: NAMESPACE }, type: 'Warning', reason: TURNED, note: TURNED, action: 'Test',
    reportingController: 'pintle.dev/test', reportingInstance: 'test', eventTime: new Date().toISOString().replace('Z', '000Z'), series: { count: 3, lastObservedTime: new Date().toISOString().replace('Z', '000Z') },
    regarding: { apiVersion: `${GROUP}/v1`, kind: 'Burden', namespace: NAMESPACE, name: 'turned' },
  });
});

test.afterAll(() => remove('--wait=false'));

const LIST = `/console/kinds/${GROUP}/v1/burdens`;
const pagesOf = (name: string) => {
  const root = `/console/engine/roots/${GROUP}/v1/burdens/${NAMESPACE}/${name}`;
  const own = `${LIST}/${NAMESPACE}/${name}`;
  return [own, `${own}?tab=yaml`, `${own}?tab=events`, `${own}/edit`, root, `${root}?tab=yaml`, `${root}?tab=events`];
};

async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(page.locator('.skeleton')).toHaveCount(0);
}

interface Size {
  nodes: number;
  text: number;
  /** The longest text that one node has, and the longest attribute. */
  longest: number;
  attribute: number;
}

const sizeOf = (page: Page) => page.evaluate((): Size => {
  const all = [...document.querySelectorAll('body *')];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let [longest, text] = [0, 0];
  while (walker.nextNode()) {
    const { length } = walker.currentNode.nodeValue ?? '';
    text += length;
    longest = Math.max(longest, length);
  }
  let attribute = 0;
  for (const element of all) for (const { value } of element.attributes) attribute = Math.max(attribute, value.length);
  return { nodes: all.length, text, longest, attribute };
});

/** A page draws a part, fits the window, and answers. */
async function isStillAPage(page: Page, path: string): Promise<void> {
  const { nodes, text, longest, attribute } = await sizeOf(page);
  expect(nodes, `${path}: nodes`).toBeLessThan(15_000);
  expect(text, `${path}: characters`).toBeLessThan(400_000);
  expect(longest, `${path}: characters in one text`).toBeLessThan(10_000);
  expect(attribute, `${path}: characters in one attribute`).toBeLessThan(10_000);
  for (const width of [320, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: `${path}: how wide it is in a window of ${width}` }).toBeLessThanOrEqual(width);
  }
  await page.keyboard.press('Control+k');
  const palette = page.getByRole('dialog').getByRole('combobox');
  await expect(palette, `${path}: answers a key`).toBeFocused();
  await page.keyboard.press('Escape');
  await expect(palette, `${path}: answers another`).toHaveCount(0);
}

for (const [name, what] of [['megabyte', 'a text of a megabyte'], ['wordy', 'a text and a list of very many words'], ['loud', 'conditions of hundreds of kilobytes'], ['crowd', 'ten thousand conditions']] as const) {
  test(`an object with ${what}: its pages cut it, fit the window, and answer`, async ({ console: page }) => {
    test.slow();
    for (const path of pagesOf(name)) {
      await test.step(path, async () => {
        await open(page, path);
        await isStillAPage(page, path);
      });
    }
  });
}

test('the list of such objects cuts them, fits the window, follows and answers', async ({ console: page }) => {
  await open(page, LIST);
  for (const name of ['megabyte', 'wordy', 'loud', 'crowd', 'turned']) await expect(page.getByRole('link', { name, exact: true })).toBeVisible();
  await isStillAPage(page, LIST);
  kubectl('patch', 'burden', 'crowd', '-n', NAMESPACE, '--type=merge', '-p', '{"spec":{"title":"Still ten thousand"}}');
  await expect(page.getByText('Still ten thousand')).toBeVisible();
  await page.getByRole('link', { name: 'crowd', exact: true }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'crowd' })).toBeVisible();
});

test('a text of a megabyte can be edited beside, and stays whole', async ({ console: page }) => {
  await open(page, `${LIST}/${NAMESPACE}/megabyte/edit`);
  await page.getByLabel('Title').fill('Edited beside');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'megabyte', exact: true })).toBeVisible();
  expect(kubectl('get', 'burden', 'megabyte', '-n', NAMESPACE, '-o', 'jsonpath={.spec.title}')).toBe('Edited beside');
  expect(kubectl('get', 'burden', 'megabyte', '-n', NAMESPACE, '-o', 'jsonpath={.spec.text}')).toHaveLength(MEGABYTE);
});

test('texts of several lines keep them when a word is changed, and what no input holds is edited as YAML', async ({ console: page }) => {
  create(burden('lines', { title: 'the first line\nthe second\n\nthe last', text: 'one\r\ntwo', labels: { note: 'a\nb', other: 'c' } }));
  await open(page, `${LIST}/${NAMESPACE}/lines/edit`);
  await expect(page.getByLabel('Title')).toHaveValue('the first line\nthe second\n\nthe last');
  await page.getByLabel('Title').fill('the first line\nthe 2nd\n\nthe last');
  await expect(page.getByLabel('Labels: value of note')).toHaveValue('a\nb');
  await page.getByLabel('Labels: value of other').fill('d');
  await expect(page.getByRole('textbox', { name: 'Text', exact: true })).toContainText('"one\\r\\ntwo"');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'lines', exact: true })).toBeVisible();
  expect(JSON.parse(kubectl('get', 'burden', 'lines', '-n', NAMESPACE, '-o', 'jsonpath={.spec}'))).toEqual({ title: 'the first line\nthe 2nd\n\nthe last', text: 'one\r\ntwo', labels: { note: 'a\nb', other: 'd' } });
});

/** The texts whose marks of direction turn what stands after them: the browser sets whatever shares a line with a text by its marks. */
const leaks = (page: Page) => page.evaluate(() => {
  const isAlone = (element: Element): boolean => {
    const { unicodeBidi, display } = getComputedStyle(element);
    return display !== 'inline' || unicodeBidi.startsWith('isolate') || unicodeBidi === 'plaintext';
  };
  const found: string[] = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!/[\u202a-\u202e\u2066-\u2069]/.test(node.nodeValue ?? '') || (node.nodeValue ?? '').endsWith('\n')) continue;
    let around = node.parentElement;
    while (around && !isAlone(around)) around = around.parentElement;
    // The members of a flexible box have lines of their own.
    if (!around || /flex|grid/.test(getComputedStyle(around).display)) continue;
    const rest = document.createRange();
    rest.setStartAfter(node);
    rest.setEndAfter(around);
    const after = [...rest.cloneContents().querySelectorAll('div, p, ul, ol, li, dl, table')].reduce((text, block) => text.replace(block.textContent ?? '', ''), rest.toString()).split('\n')[0]?.trim();
    if (after) found.push(`${around.tagName}.${around.className}: "${after.slice(0, 60)}" after "${node.nodeValue?.slice(0, 40)}"`);
  }
  return found;
});

test('marks of direction in a text turn nothing around it, on no page, and hide nothing', async ({ console: page }) => {
  test.slow();
  const paths = [LIST, ...pagesOf('turned'), '/console/engine/events'];
  const wrong: string[] = [];
  let seen = 0;
  for (const path of paths) {
    await open(page, path);
    // In a form it is no text, but a value.
    if (!path.endsWith('/edit')) await expect(page.getByRole('main').getByText('مصدر').filter({ visible: true }).first()).toBeVisible();
    seen += await page.getByRole('main').getByText('مصدر').count();
    wrong.push(...(await leaks(page)).map((leak) => `${path}: ${leak}`));
    await isStillAPage(page, path);
  }
  expect(wrong).toEqual([]);
  expect(seen, 'texts that were looked at').toBeGreaterThan(15);
});

test('a Darkroom with such texts in all of its fields is shown, searched and edited as any other', async ({ console: page }) => {
  apply({
    apiVersion: 'deployments.example.com/v1alpha1', kind: 'Darkroom',
    metadata: { name: 'turned', namespace: NAMESPACE, annotations: { 'pintle.dev/suspend': 'true', 'example.com/note': TURNED }, labels: { team: 'a' } },
    spec: { version: '0.4.0', source: { type: 'S3', bucket: TURNED, region: HEBREW, pathPrefix: `/${TURNED}`, endpoint: `https://${TURNED}`, credentialsSecretRef: { name: 'keys' } }, subDomains: ['turned'] },
  });
  replaceStatus({ apiVersion: 'deployments.example.com/v1alpha1', kind: 'Darkroom', metadata: { name: 'turned', namespace: NAMESPACE } }, {
    domains: [TURNED, `${HEBREW}.example.com`, 'd'.repeat(100_000)], conditions: [condition('Ready', 'False', TURNED, TURNED)],
  });
  const own = `${DARKROOMS}/${NAMESPACE}/turned`;
  const wrong: string[] = [];
  for (const path of ['/console/', `${DARKROOMS}?search=turned`, own, `${own}?tab=yaml`, `${own}/edit`, '/console/engine', '/console/engine/reconcilers/darkroom']) {
    await open(page, path);
    if (path.includes('search')) await expect(page.getByRole('main').getByRole('link', { name: 'turned', exact: true })).toBeVisible();
    wrong.push(...(await leaks(page)).map((leak) => `${path}: ${leak}`));
    await isStillAPage(page, path);
  }
  expect(wrong).toEqual([]);
  await open(page, `${own}/edit`);
  await expect(page.getByLabel('Bucket')).toHaveValue(TURNED);
  await page.getByLabel('Region').fill('eu-central-1');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'turned', exact: true })).toBeVisible();
  expect(kubectl('get', 'darkroom', 'turned', '-o', 'jsonpath={.spec.source.bucket}')).toBe(TURNED);
  kubectl('delete', 'darkroom', 'turned');
});
