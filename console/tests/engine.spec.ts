// The engine from the browser: a module is looked at before it is there, a swap before it is done, and a root's logic while it works.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Page } from '@playwright/test';
import { GUESTS, apply, darkroom, expect, kubectl, pintle, test, until } from './world';

const KIND = 'deployments.example.com/v1alpha1/darkrooms';

const upload = (page: Page, name: string, buffer: Buffer) =>
  page.locator('input[type=file]').setInputFiles({ name, mimeType: 'application/wasm', buffer });

/** `(component (import "a" (func)))` in binary form. */
const IMPORTING = Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0, 7, 5, 1, 0x40, 0, 1, 0, 10, 6, 1, 0, 1, 0x61, 1, 0]);

const inForce = () => kubectl('get', 'reconciler', 'darkroom', '-o', 'jsonpath={.status.active.module}');

/** Roots at rest, so that what a plan says is not about what is still going on. */
const atRest = (name: string) =>
  until(`${name} to be ready`, () => kubectl('get', 'darkroom', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}') !== '');

test('what is no guest is refused in words, and nothing is created', async ({ console: page }) => {
  await page.goto('/console/engine/modules');
  await expect(page.getByRole('heading', { name: 'Modules' })).toBeVisible();
  const before = kubectl('get', 'modules', '-o', 'name');

  await upload(page, 'notes.txt', Buffer.from('I am a text.'));
  await expect(page.getByText('NotWasm', { exact: true })).toBeVisible();
  await expect(page.getByText('This file is not WebAssembly.')).toBeVisible();

  await upload(page, 'importing.wasm', IMPORTING);
  await expect(page.getByText('ImportsNotAllowed', { exact: true })).toBeVisible();
  await expect(page.getByText('A guest imports nothing')).toBeVisible();

  expect(kubectl('get', 'modules', '-o', 'name')).toBe(before);
});

test('a module is checked, compared, named, created, planned and swapped', async ({ console: page }) => {
  test.setTimeout(240_000);
  apply(darkroom('swapped'));
  await atRest('swapped');
  const [old, name] = [inForce(), 'darkroom-from-browser'];
  await page.goto('/console/engine/modules');
  await upload(page, 'darkroom-next.wasm', readFileSync(join(GUESTS, 'darkroom-next.wasm')));
  const field = page.getByLabel('Name of the Module');
  await expect(field).toBeVisible({ timeout: 60_000 });
  await expect(page.getByText(`Against ${old}, in force on darkroom`)).toBeVisible();
  await field.fill(old);
  await expect(page.getByText('a Module never changes')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Create' })).toBeDisabled();
  await field.fill(name);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('link', { name: 'Plan a swap of darkroom' }).click();

  // The plan writes nothing.
  await expect(page.getByLabel('Module', { exact: true })).toHaveValue(name);
  const ready = () => kubectl('get', 'module', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")]}');
  await expect.poll(ready, { message: 'the Module to be ready', timeout: 90_000 }).toContain('"status":"True"');
  const version = () => kubectl('get', 'deployment', 'swapped', '-o', 'jsonpath={.metadata.resourceVersion}');
  const before = version();
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  const swap = page.getByRole('region', { name: 'Swap' });
  await expect(swap).toBeVisible({ timeout: 60_000 });
  expect(inForce()).toBe(old);
  expect(version()).toBe(before);

  await swap.getByRole('button', { name: 'Swap' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('button', { name: 'Swap' })).toBeDisabled();
  await dialog.getByRole('textbox').fill('darkroom');
  await dialog.getByRole('button', { name: 'Swap' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'darkroom' })).toBeVisible();
  await until('it to be in force', () => inForce() === name);
  await expect(page.getByRole('link', { name }).first()).toBeVisible();

  // In use it cannot be deleted; afterwards it can, by its name.
  await page.goto(`/console/engine/modules?name=${name}`);
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete' })).toBeDisabled();
  pintle('swap', 'darkroom', old);
  await until('the old one to be in force', () => inForce() === old);
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete' })).toBeEnabled({ timeout: 30_000 });
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill(name);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await until('it to be gone', () => kubectl('get', 'module', name, '--ignore-not-found') === '');
  kubectl('delete', 'darkroom', 'swapped');
});

test('request and answer of a root with a Secret show its keys and no value, on the page and on the wire', async ({ console: page }) => {
  const secret = 'never-to-be-seen-4711';
  apply({
    ...darkroom('hidden'),
    spec: { version: '0.4.0', source: { type: 'S3', bucket: 'pictures', region: 'eu-central-1', accessKey: 'AKIAHIDDEN', secretKey: secret }, subDomains: ['hidden'] },
  });
  await atRest('hidden');
  const seen: string[] = [];
  page.on('response', async (response) => {
    if (response.url().includes('/inspect')) seen.push(await response.text().catch(() => ''));
  });
  await page.goto(`/console/engine/roots/${KIND}/default/hidden?tab=inout`);
  await expect(page.getByRole('region', { name: 'Answer as YAML' })).toBeVisible({ timeout: 30_000 });
  await expect(page.getByText('Of Secrets only the keys are shown.')).toBeVisible();
  const answer = await page.getByRole('region', { name: 'Answer as YAML' }).innerText();
  expect(answer).toContain('SOURCE_BUCKET_SECRETKEY');
  // The keys stand in the root, for everybody who may read it; what is hidden is the Secret.
  const value = Buffer.from(secret).toString('base64');
  expect(await page.locator('main').innerText()).not.toContain(value);
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.join('\n')).not.toContain(value);
  kubectl('delete', 'darkroom', 'hidden');
});

test('a root shows its children, and follows them', async ({ console: page }) => {
  apply(darkroom('tree'));
  await page.goto(`/console/engine/roots/${KIND}/default/tree`);
  for (const kind of ['ConfigMap', 'Service', 'Deployment', 'Ingress']) await expect(page.getByRole('button', { name: new RegExp(`^${kind} `) })).toBeVisible();
  // It has no Secret of its own, which is no failure.
  await expect(page.getByText('Not all kinds could be listed')).toHaveCount(0);
  kubectl('delete', 'darkroom', 'tree');
  await expect(page.getByText('There is no Darkroom tree')).toBeVisible();
});
