// What a hostile page, network or object tries.
import { request } from '@playwright/test';
import { ADDRESS, DARKROOMS, ORIGIN, apply, darkroom, expect, kubectl, test } from './world';

const SESSION = '/api/v1/session';

test('without the secret of the console nothing is served but the pages themselves', async () => {
  const stranger = await request.newContext();
  expect((await stranger.get(ORIGIN + SESSION)).status()).toBe(401);
  expect((await stranger.get(`${ORIGIN}/api/v1/kinds`)).status()).toBe(401);
  expect((await stranger.get(ORIGIN + SESSION, { headers: { authorization: `Bearer ${'a'.repeat(64)}` } })).status()).toBe(401);
  const page = await stranger.get(`${ORIGIN}/console/`, { headers: { accept: 'text/html' } });
  expect(page.status()).toBe(200);
  expect(await page.text()).not.toContain(new URL(ADDRESS).hash.slice(1));
});

test('a name that leads to this machine is no way in', async () => {
  const stranger = await request.newContext();
  const rebound = await stranger.get(ORIGIN + SESSION, { headers: { host: `evil.test:${new URL(ORIGIN).port}` } });
  expect(rebound.status()).toBe(421);
});

test('a page from elsewhere can neither write nor frame', async ({ console: page }) => {
  const from = async (headers: Record<string, string>) =>
    (await page.request.post(`${ORIGIN}/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces/default`, {
      headers: { 'content-type': 'application/json', ...headers },
      data: JSON.stringify(darkroom('cross-site')),
    })).status();
  expect(await from({ origin: 'https://evil.test', 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await from({ origin: 'http://evil.test' })).toBe(403);
  expect(await from({ 'content-type': 'text/plain' })).toBe(415);
  expect(kubectl('get', 'darkroom', 'cross-site', '--ignore-not-found')).toBe('');
  const headers = (await page.request.get(`${ORIGIN}/console/`, { headers: { accept: 'text/html' } })).headers();
  expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
  expect(headers['content-security-policy']).toContain("require-trusted-types-for 'script'");
});

test('script in whatever an object says stays text', async ({ console: page }) => {
  const evil = '<img src=x onerror="document.title=`taken`"><script>document.title="taken"</script>';
  const rtl = 'abc';
  apply({
    ...darkroom('hostile'),
    metadata: { name: 'hostile', namespace: 'default', labels: { 'example.com/a': 'b' }, annotations: { note: evil, rtl: `\u202e${rtl}` } },
    spec: { version: '0.4.0', source: { type: 'WebFolder', baseUrl: 'https://example.com/"><script>document.title="taken"</script>' }, subDomains: ['hostile'] },
  });
  kubectl('patch', 'darkroom', 'hostile', '--subresource=status', '--type=merge', '-p', JSON.stringify({
    status: { conditions: [{ type: 'Ready', status: 'False', reason: 'Evil', message: evil, lastTransitionTime: '2026-01-01T00:00:00Z' }] },
  }));
  for (const path of ['/console/', DARKROOMS, `${DARKROOMS}/default/hostile`, '/console/engine/roots/deployments.example.com/v1alpha1/darkrooms/default/hostile', '/console/engine/events']) {
    await page.goto(path);
    await expect(page.getByRole('heading').first()).toBeVisible();
    await expect(page.locator('.skeleton')).toHaveCount(0);
    if (path.includes('hostile')) await expect(page.getByRole('heading', { level: 1, name: 'hostile', exact: true })).toBeVisible();
    // An image that is missing, as the one in the text would be: when this one has failed, so has any before it.
    await page.evaluate(() => new Promise((resolve) => Object.assign(new Image(), { onerror: resolve, src: 'x' })));
    expect(await page.title(), path).not.toContain('taken');
    expect(await page.locator('img[src=x]').count(), path).toBe(0);
  }
  kubectl('delete', 'darkroom', 'hostile');
});
