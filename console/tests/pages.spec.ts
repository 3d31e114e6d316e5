// What holds for every page: it can be read by everybody, on every screen, in light and dark, and it stays within its policies.
import { type Page } from '@playwright/test';
import { DARKROOMS, expect, test, violations } from './world';

const KIND = 'deployments.example.com/v1alpha1/darkrooms';
const PAGES = [
  '/console/',
  DARKROOMS,
  `${DARKROOMS}/new`,
  `${DARKROOMS}/default/darkroom-sample`,
  '/console/kinds/my.domain/v1/webservers',
  '/console/kinds/my.domain/v1/webservers/new',
  '/console/engine',
  '/console/engine/reconcilers',
  '/console/engine/reconcilers/darkroom',
  '/console/engine/reconcilers/darkroom/plan',
  '/console/engine/modules',
  '/console/engine/views',
  '/console/engine/events',
  `/console/engine/roots/${KIND}/default/darkroom-sample`,
];

async function open(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await expect(page.locator('[aria-busy=true]')).toHaveCount(0);
}

for (const scheme of ['light', 'dark'] as const) {
  test(`no page has a violation that axe knows, in ${scheme}`, async ({ console: page }) => {
    test.slow();
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    const wrong: string[] = [];
    for (const path of PAGES) {
      await open(page, path);
      wrong.push(...(await violations(page)).map((found) => `${path}: ${found}`));
    }
    expect(wrong).toEqual([]);
  });
}

test('no page is wider than a telephone', async ({ console: page }) => {
  await page.setViewportSize({ width: 320, height: 640 });
  for (const path of PAGES) {
    await open(page, path);
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: path }).toBeLessThanOrEqual(320);
  }
});

test('a page that does not exist says so, and leads back', async ({ console: page }) => {
  await page.goto('/console/no/such/page');
  await expect(page.getByRole('heading', { level: 1 })).toContainText(/not found|no such page/i);
});
