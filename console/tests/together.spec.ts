// Two people at once, each in a browser of their own: what one does the other sees, and nobody's work is lost without a word.
import { type Page } from '@playwright/test';
import { DARKROOMS, apply, darkroom, expect, kubectl, nameInput, test, typeInput } from './world';

const pageOf = (name: string) => `${DARKROOMS}/default/${name}`;
const spec = (name: string, path: string) => kubectl('get', 'darkroom', name, '--ignore-not-found', '-o', `jsonpath={.spec.${path}}`);

async function addDomain(page: Page, domain: string): Promise<void> {
  await page.getByLabel('Sub domains').fill(domain);
  await page.getByLabel('Sub domains').press('Enter');
}

async function edit(page: Page, name: string): Promise<void> {
  await page.goto(`${pageOf(name)}/edit`);
  await expect(page.getByRole('heading', { level: 1, name: `Edit ${name}` })).toBeVisible();
  await expect(page.getByLabel('Base URL')).toHaveValue('https://example.com/images');
}

/** Marks a page, so that it can be told whether it was loaded anew. */
const mark = (page: Page) => page.evaluate(() => void Object.assign(window, { isMarked: true }));
const isMarked = (page: Page) => page.evaluate(() => 'isMarked' in window);

test('what one browser saves, the other shows at once: in its list and on its page, without loading anew', async ({ console: page, other, wired: third }) => {
  apply(darkroom('both'));
  await other.goto(`${DARKROOMS}?search=both`);
  const row = other.getByRole('table').getByRole('row').filter({ has: other.getByRole('link', { name: 'both', exact: true }) });
  await expect(row).toContainText('0.4.0');
  await third.goto(pageOf('both'));
  await expect(third.getByText('both.darkroom.example.com').first()).toBeVisible();
  await mark(other);
  await mark(third);

  await edit(page, 'both');
  await page.getByRole('button', { name: 'Remove both', exact: true }).click();
  await addDomain(page, 'changed');
  await page.getByLabel('Base URL').fill('https://example.com/changed');
  await page.getByLabel('Version').fill('0.3.1');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'both', exact: true })).toBeVisible();

  await expect(row).toContainText('0.3.1');
  await expect(third.getByText('changed.darkroom.example.com').first()).toBeVisible();

  kubectl('delete', 'darkroom', 'both');
  await expect(row).toHaveCount(0);
  await expect(third.getByText('There is no Darkroom both')).toBeVisible();
  expect(await isMarked(other) && await isMarked(third), 'neither was loaded anew').toBe(true);
});

test('who saves second is told so, before and after trying, and keeps what was typed', async ({ console: page, other }) => {
  apply(darkroom('contested'));
  await edit(page, 'contested');
  await edit(other, 'contested');
  await page.getByLabel('Base URL').fill('https://example.com/mine');
  await addDomain(page, 'mine');

  await other.getByLabel('Base URL').fill('https://example.com/theirs');
  await other.getByRole('button', { name: 'Save' }).click();
  await expect(other.getByRole('heading', { level: 1, name: 'contested', exact: true })).toBeVisible();

  const notice = page.getByRole('alert').filter({ hasText: 'Somebody has changed it meanwhile' });
  await expect(notice).toBeVisible();
  const keeps = async () => {
    await expect(page.getByLabel('Base URL')).toHaveValue('https://example.com/mine');
    await expect(page.getByRole('button', { name: 'Remove mine', exact: true })).toBeVisible();
  };
  await keeps();
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'the object has been modified' })).toBeVisible();
  await keeps();
  expect(spec('contested', 'source.baseUrl')).toBe('https://example.com/theirs');
  expect(spec('contested', 'subDomains')).not.toContain('mine');

  // Only who asks for it begins anew, and then it can be saved.
  await notice.getByRole('button', { name: 'Take theirs' }).click();
  await expect(page.getByLabel('Base URL')).toHaveValue('https://example.com/theirs');
  await expect(notice).toHaveCount(0);
  await addDomain(page, 'mine');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'contested', exact: true })).toBeVisible();
  expect(JSON.parse(spec('contested', 'subDomains'))).toEqual(['contested', 'mine']);
  kubectl('delete', 'darkroom', 'contested');
});

test('a status that is written while somebody types is no conflict', async ({ console: page }) => {
  apply(darkroom('busy'));
  await edit(page, 'busy');
  await page.getByLabel('Base URL').fill('https://example.com/typed');
  const version = () => kubectl('get', 'darkroom', 'busy', '-o', 'jsonpath={.metadata.resourceVersion}');
  const before = version();
  kubectl('patch', 'darkroom', 'busy', '--subresource=status', '--type=merge', '-p', '{"status":{"replicas":7}}');
  expect(version()).not.toBe(before);
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'busy', exact: true })).toBeVisible();
  expect(spec('busy', 'source.baseUrl')).toBe('https://example.com/typed');
  kubectl('delete', 'darkroom', 'busy');
});

test('what was typed for something that somebody else deletes stays to be read', async ({ console: page }) => {
  apply(darkroom('vanishing'));
  await edit(page, 'vanishing');
  await page.getByLabel('Base URL').fill('https://example.com/typed');
  kubectl('delete', 'darkroom', 'vanishing');
  await expect(page.getByRole('alert').filter({ hasText: 'Somebody has deleted it meanwhile' })).toBeVisible();
  await expect(page.getByLabel('Base URL')).toHaveValue('https://example.com/typed');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('alert').filter({ hasText: 'not found' })).toBeVisible();
  await expect(page.getByLabel('Base URL')).toHaveValue('https://example.com/typed');
});

test('a name that somebody else took first is said at the name, and everything that was typed stays', async ({ console: page, other }) => {
  for (const one of [page, other]) {
    await one.goto(`${DARKROOMS}/new`);
    await nameInput(one).fill('wanted-by-two');
    await typeInput(one, 'WebFolder').check();
    await one.getByLabel('Base URL').fill(`https://example.com/${one === page ? 'first' : 'second'}`);
    await addDomain(one, 'wanted-by-two');
  }
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'wanted-by-two' })).toBeVisible();
  await other.getByRole('button', { name: 'Save' }).click();
  const name = nameInput(other);
  await expect(name).toHaveAttribute('aria-invalid', 'true');
  await expect(name).toHaveAccessibleDescription(/is taken already/);
  await expect(name).toBeFocused();
  await expect(other.getByLabel('Base URL')).toHaveValue('https://example.com/second');
  await name.fill('wanted-by-two-too');
  await other.getByRole('button', { name: 'Save' }).click();
  await expect(other.getByRole('heading', { level: 1, name: 'wanted-by-two-too' })).toBeVisible();
  expect(spec('wanted-by-two', 'source.baseUrl')).toBe('https://example.com/first');
  kubectl('delete', 'darkroom', 'wanted-by-two', 'wanted-by-two-too');
});
