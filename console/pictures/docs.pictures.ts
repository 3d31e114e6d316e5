// The pictures of docs/quickstart.md and docs/console.md, of the pages as they are.
import { join } from 'node:path';
import { DARKROOMS, GUESTS, apply, darkroom, expect, pintle, test } from '../tests/world';

const FOLDER = '../docs/images';

test('the pictures of the docs', async ({ console: page }) => {
  test.setTimeout(120_000);
  pintle('push', 'darkroom-0.2.0', join(GUESTS, 'darkroom-next.wasm'), '--wait');
  apply(darkroom('holiday-photos'));
  apply(darkroom('shop'));
  apply({ ...darkroom('press'), spec: { source: { type: 'S3', bucket: 'press', region: 'eu-central-1' }, subDomains: ['press'] } });
  await page.setViewportSize({ width: 1200, height: 720 });
  const take = async (name: string, path: string, scheme: 'light' | 'dark') => {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' });
    await page.goto(path);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    // At rest: nothing is being loaded, nothing could not be read, and what is made is ready.
    await expect(page.getByText('Live', { exact: true })).toBeVisible();
    await expect(page.locator('[aria-busy=true], .skeleton, .notice:has-text("could be listed")')).toHaveCount(0);
    if (name === 'source') await expect(page.getByRole('button', { name: /^Deployment (?!.*not ready)/ })).toBeVisible();
    await page.screenshot({ path: `${FOLDER}/console-${name}.png`, animations: 'disabled' });
  };
  await page.goto(DARKROOMS);
  await expect(page.getByText('holiday-photos').first()).toBeVisible();
  await take('new-source', `${DARKROOMS}/new`, 'light');
  await take('source', `${DARKROOMS}/default/holiday-photos`, 'dark');
  await take('overview', '/console/engine', 'light');
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.goto('/console/engine/reconcilers/darkroom/plan');
  await page.getByLabel('Module', { exact: true }).selectOption('darkroom-0.2.0');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await expect(page.getByRole('region', { name: 'Swap' })).toBeVisible({ timeout: 60_000 });
  await page.screenshot({ path: `${FOLDER}/console-plan.png`, animations: 'disabled' });
});
