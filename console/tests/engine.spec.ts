// The engine from the browser: a module is looked at before it is there, a swap before it is done, and a root's logic while it works.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Page, type Response } from '@playwright/test';
import { CLUSTER_PATIENCE } from './patience';
import { GUESTS, apply, darkroom, expect, kubectl, reasonOf, test, until, untilEngineStarted } from './world';

const KIND = 'deployments.example.com/v1alpha1/darkrooms';

const upload = (page: Page, name: string, buffer: Buffer) =>
  page.locator('input[type=file]').setInputFiles({ name, mimeType: 'application/wasm', buffer });

/** `(component (import "a" (func)))` in binary form. */
const IMPORTING = Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0, 7, 5, 1, 0x40, 0, 1, 0, 10, 6, 1, 0, 1, 0x61, 1, 0]);

const inForce = () => kubectl('get', 'reconciler', 'darkroom', '-o', 'jsonpath={.status.active.module}');

/** Waits until a root's logic has been asked, and what it wants is there. */
const isReconciled = (name: string) => until(`${name} is reconciled`, () => reasonOf(`darkroom/${name}`), (reason) => reason !== '');

/** What the host has written of a root's children: of the Deployment without what its own controller writes into the status. */
const children = (name: string) => kubectl('get', `deployment/${name}`, `configmap/${name}`, '-o', 'jsonpath={range .items[*]}{.metadata.uid} {.metadata.generation} {.spec} {.data} {.metadata.labels}{end}');

test('what is no guest is refused in words, and nothing is created', async ({ console: page }) => {
  await untilEngineStarted(page);
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
  test.slow();
  apply(darkroom('swapped'));
  await isReconciled('swapped');
  await untilEngineStarted(page);
  const [old, name] = [inForce(), 'darkroom-from-browser'];
  await page.goto('/console/engine/modules');
  await upload(page, 'darkroom-next.wasm', readFileSync(join(GUESTS, 'darkroom-next.wasm')));
  const field = page.getByLabel('Name of the Module');
  await expect(field).toBeVisible();
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
  await until('the Module is ready', ready, (condition) => condition.includes('"status":"True"'));
  const before = children('swapped');
  expect(before).toContain('CACHE_TIME');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  const swap = page.getByRole('region', { name: 'Swap' });
  await expect(swap).toBeVisible();
  expect(inForce()).toBe(old);
  expect(children('swapped')).toBe(before);

  await swap.getByRole('button', { name: 'Swap' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('button', { name: 'Swap' })).toBeDisabled();
  await dialog.getByRole('textbox').fill('darkroom');
  await dialog.getByRole('button', { name: 'Swap' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'darkroom' })).toBeVisible();
  await until('it is in force', inForce, (module) => module === name);
  await expect(page.getByRole('link', { name }).first()).toBeVisible();

  // In use it cannot be deleted; once nobody uses it, it can, by its name.
  await page.goto(`/console/engine/modules?name=${name}`);
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete' })).toBeDisabled();
  await page.goto('/console/engine/reconcilers/darkroom');
  await page.getByRole('link', { name: 'Undo', exact: true }).click();
  await expect(page.getByLabel('Module', { exact: true })).toHaveValue(old);
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await swap.getByRole('button', { name: 'Swap' }).click();
  await dialog.getByRole('textbox').fill('darkroom');
  await dialog.getByRole('button', { name: 'Swap' }).click();
  await until('the old one is in force', inForce, (module) => module === old);
  // The history keeps it for whoever swaps back, until the Reconciler forgets.
  const history = () => kubectl('get', 'reconciler', 'darkroom', '-o', 'jsonpath={.status.history[*].module}');
  await until('the history has it', history, (modules) => modules.split(' ').includes(name));
  await page.goto(`/console/engine/modules?name=${name}`);
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete' })).toBeDisabled();
  kubectl('patch', 'reconciler', 'darkroom', '--subresource=status', '--type=merge', '-p', '{"status":{"history":null}}');
  await page.goto(`/console/engine/modules?name=${name}`);
  await expect(page.getByRole('dialog').getByRole('button', { name: 'Delete' })).toBeEnabled({ timeout: CLUSTER_PATIENCE });
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill(name);
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await until('it is gone', () => kubectl('get', 'module', name, '--ignore-not-found'), (seen) => seen === '');
  kubectl('delete', 'darkroom', 'swapped');
});

test('request and answer of a root with a Secret show its keys and no value, on the page and on the wire', async ({ console: page }) => {
  const secret = 'never-to-be-seen-4711';
  apply({
    ...darkroom('hidden'),
    spec: { version: '0.4.0', source: { type: 'S3', bucket: 'pictures', region: 'eu-central-1', accessKey: 'AKIAHIDDEN', secretKey: secret }, subDomains: ['hidden'] },
  });
  await isReconciled('hidden');
  await untilEngineStarted(page);
  const answers: Response[] = [];
  page.on('response', (response) => {
    if (response.url().includes('/inspect')) answers.push(response);
  });
  await page.goto(`/console/engine/roots/${KIND}/default/hidden?tab=inout`);
  await expect(page.getByRole('region', { name: 'Answer as YAML' })).toContainText('SOURCE_BUCKET_SECRETKEY');
  await expect(page.getByText('Of Secrets only the keys are shown.')).toBeVisible();
  // The keys stand in the root, for everybody who may read it; what is hidden is the Secret.
  const value = Buffer.from(secret).toString('base64');
  expect(await page.locator('main').innerText()).not.toContain(value);
  // One that the page did not wait for has no text.
  const seen = (await Promise.all(answers.map((answer) => answer.text().catch(() => '')))).join('\n');
  expect(seen).toContain('SOURCE_BUCKET_SECRETKEY');
  expect(seen).not.toContain(value);
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
