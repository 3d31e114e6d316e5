// What somebody does who has never seen a manifest: make a Darkroom, watch it become ready, change it, delete it.
import { DARKROOMS, expect, kubectl, nameInput, test, typeInput, until } from './world';

const ingressHosts = (name: string): string =>
  kubectl('get', 'ingress', name, '--ignore-not-found', '-o', 'jsonpath={.spec.rules[*].host}');

const isReady = (name: string): string => kubectl('get', 'darkroom', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].status}');

test('a Darkroom of a web folder is made, watched, edited and deleted without a line of YAML', { tag: '@smoke' }, async ({ console: page }) => {
  const name = 'story';
  await page.getByRole('link', { name: 'Darkrooms' }).first().click();
  await expect(page.getByRole('heading', { name: 'All Darkrooms' })).toBeVisible();
  await expect(page).toHaveTitle(/Darkroom/);
  await page.getByRole('link', { name: 'New Darkroom' }).first().click();

  await nameInput(page).fill(name);
  await typeInput(page, 'WebFolder').check();
  await page.getByLabel('Base URL').fill('https://example.com/images');
  const domains = page.getByLabel('Sub domains');
  await domains.fill('story');
  await domains.press('Enter');
  await page.getByRole('button', { name: 'Save' }).click();

  // The page follows what the host does, without being asked again.
  await expect(page.getByText('story.darkroom.example.com').first()).toBeVisible();
  await until('the Ingress has its host', () => ingressHosts(name), (hosts) => hosts === 'story.darkroom.example.com');
  await until('it is ready', () => isReady(name), (status) => status === 'True');
  await expect(page.getByRole('main').getByRole('status').getByText('Ready', { exact: true })).toBeVisible();

  // A deep link shows the same.
  await page.goto(`${DARKROOMS}/default/${name}`);
  await expect(page.getByRole('heading', { name })).toBeVisible();
  await expect(page.getByText('Deployment').first()).toBeVisible();

  await page.getByRole('link', { name: 'Edit' }).or(page.getByRole('button', { name: 'Edit' })).first().click();
  await page.getByLabel('Sub domains').fill('second');
  await page.getByLabel('Sub domains').press('Enter');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('second.darkroom.example.com').first()).toBeVisible();
  await until('the Ingress has both hosts', () => ingressHosts(name), (hosts) => hosts.split(' ').length === 2);

  await page.getByRole('button', { name: 'Delete' }).first().click();
  const dialog = page.getByRole('dialog');
  const confirm = dialog.getByRole('button', { name: 'Delete' });
  await expect(confirm).toBeDisabled();
  await dialog.getByRole('textbox').fill(name);
  await confirm.click();
  await expect(page.getByRole('heading', { name: 'All Darkrooms' })).toBeVisible();
  await until('it is gone', () => kubectl('get', 'darkroom', name, '--ignore-not-found'), (seen) => seen === '');
});

test('a Darkroom of a bucket is made, which the original could not', async ({ console: page }) => {
  const name = 'story-s3';
  await page.goto(`${DARKROOMS}/new`);
  await nameInput(page).fill(name);
  await typeInput(page, 'S3').check();
  await page.getByLabel('Bucket').fill('pictures');
  await page.getByLabel('Region').fill('eu-central-1');
  await page.getByLabel('Access key').fill('AKIAEXAMPLE');
  await page.getByLabel('Secret key').fill('kept-from-everybody');
  await page.getByLabel('Sub domains').fill(name);
  await page.getByLabel('Sub domains').press('Enter');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(`${name}.darkroom.example.com`).first()).toBeVisible();
  const source = JSON.parse(kubectl('get', 'darkroom', name, '-o', 'jsonpath={.spec.source}'));
  expect(source).toMatchObject({ type: 'S3', bucket: 'pictures', region: 'eu-central-1' });
  kubectl('delete', 'darkroom', name);
});
