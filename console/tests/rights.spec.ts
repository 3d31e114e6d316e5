// Two people of differing rights, at the console of a cluster: each sees what it may do, and the server refuses the rest.
import { type Page } from '@playwright/test';
import { DARKROOMS, IN_CLUSTER, MARK, TOKEN, apply, askMarks, darkroom, expect, kubectl, test, until } from './world';

const NAMESPACE = 'console-tests';

/** The path of a Darkroom's page, below that of the console. */
const pageOf = (name: string) => `${DARKROOMS.replace('/console/', '')}/${NAMESPACE}/${name}`;

async function signIn(page: Page, token: string, path = ''): Promise<void> {
  await page.goto(IN_CLUSTER + path);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByLabel('Token')).toBeHidden();
}

const isThere = (name: string) => kubectl('get', 'darkroom', name, '-n', NAMESPACE, '--ignore-not-found', '-o', 'name') !== '';

const ask = (page: Page, method: string, path: string, token: string, body?: unknown) =>
  page.request.fetch(new URL(path, IN_CLUSTER).href, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { data: JSON.stringify(body) }),
  });

test.describe('with a token', () => {
  test('who may only look sees no way to change anything, and the server refuses all the same', async ({ page }) => {
    apply(darkroom('rights', NAMESPACE));
    await signIn(page, TOKEN.viewer, pageOf('rights'));
    await expect(page.getByRole('heading', { name: 'rights' })).toBeVisible();
    await expect(page.getByRole('button', { name: 'Delete' })).toBeDisabled();

    const objects = '/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces';
    const deleted = await ask(page, 'DELETE', `${objects}/${NAMESPACE}/rights`, TOKEN.viewer);
    expect(deleted.status()).toBe(403);
    expect((await deleted.json()).details).toContain('cannot delete resource "darkrooms"');
    const created = await ask(page, 'POST', `${objects}/${NAMESPACE}`, TOKEN.viewer, darkroom('more', NAMESPACE));
    expect(created.status()).toBe(403);
    expect([isThere('rights'), isThere('more')]).toEqual([true, false]);
  });

  test('who may edit does, in its own namespace alone', async ({ page }) => {
    apply(darkroom('editable', NAMESPACE));
    await signIn(page, TOKEN.editor, pageOf('editable'));
    await expect(page.getByRole('button', { name: 'Delete' })).toBeEnabled();
    const elsewhere = '/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces/default';
    expect((await ask(page, 'POST', elsewhere, TOKEN.editor, darkroom('elsewhere'))).status()).toBe(403);
    await page.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox').fill('editable');
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await until('it is gone', () => kubectl('get', 'darkroom', 'editable', '-n', NAMESPACE, '--ignore-not-found'), (seen) => seen === '');
  });

  test('who has rights in one namespace is told what cannot be seen, chooses the namespace, and finds it again', async ({ page }) => {
    apply(darkroom('seen', NAMESPACE));
    await signIn(page, TOKEN.viewer);
    const menu = page.getByRole('navigation').first();
    const kind = menu.getByRole('link', { name: 'Darkrooms', exact: true });
    await expect(page.getByText(/You lack the right to list .*darkrooms\.deployments\.example\.com.* in all namespaces/)).toBeVisible();
    await expect(kind).toHaveCount(0);
    // Neither are those of the engine, of which it may list none.
    for (const name of ['Reconcilers', 'Modules', 'Views']) await expect(menu.getByRole('link', { name, exact: true })).toHaveCount(0);

    await page.getByLabel('Namespace').fill(NAMESPACE);
    await page.getByRole('button', { name: 'Show' }).click();
    await kind.click();
    await expect(page.getByRole('main').getByRole('link', { name: 'seen', exact: true })).toBeVisible();
    // It may not read the CRD: the columns are those of the table that kubectl gets.
    for (const name of ['VERSION', 'TYPE']) await expect(page.getByRole('columnheader', { name })).toBeVisible();

    await page.reload();
    await page.getByLabel('Token').fill(TOKEN.viewer);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByRole('main').getByRole('link', { name: 'seen', exact: true })).toBeVisible();

    // Elsewhere the list is not empty: it says which right is missing.
    await page.getByLabel('Namespace').fill('default');
    await page.getByRole('button', { name: 'Show' }).click();
    await expect(page.getByRole('alert')).toContainText('cannot list resource "darkrooms"');
    await expect(page.getByText('No Darkrooms yet')).toHaveCount(0);
    kubectl('delete', 'darkroom', 'seen', '-n', NAMESPACE);
  });

  test('a token that nobody knows is refused once, and nothing is shown', async ({ page }) => {
    const refused: string[] = [];
    page.on('response', (response) => response.status() === 401 && !response.url().endsWith(MARK) && refused.push(response.url()));
    await page.goto(IN_CLUSTER);
    await page.getByLabel('Token').fill('made.up.token');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await expect(page.getByRole('alert')).toBeVisible();
    await askMarks(page);
    expect(refused.length).toBeLessThanOrEqual(3);
  });

  test('the gateway lends nobody its own rights', async ({ page }) => {
    // Its account may list Modules; this caller may not.
    expect((await ask(page, 'GET', '/api/v1/objects/pintle.dev/v1alpha1/modules', TOKEN.viewer)).status()).toBe(403);
    for (const token of ['', 'x y', TOKEN.viewer.slice(0, -4)]) {
      expect((await ask(page, 'GET', '/api/v1/kinds', token)).status()).toBe(401);
    }
  });
});
