// The tests in a browser. `cargo xtask test` starts what they need and says where it is; see tests/world.ts.
import { defineConfig } from '@playwright/test';
import { PATIENCE, TEST_PATIENCE } from './tests/patience';

export default defineConfig({
  testDir: 'tests',
  outputDir: '../target/browser',
  // One control plane and two cores: tests side by side would only wait for each other.
  workers: 1,
  timeout: TEST_PATIENCE,
  expect: { timeout: PATIENCE, toPass: { timeout: PATIENCE } },
  // A run that is hopeless ends. A test that passes on a later try counts as none of these: the summary names it as flaky.
  maxFailures: 3,
  retries: Number(process.env.PINTLE_RETRIES) || 0,
  forbidOnly: true,
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    ...(process.env.PINTLE_CONSOLE ? { baseURL: process.env.PINTLE_CONSOLE } : {}),
    // Who clicks waits no longer than who looks.
    actionTimeout: PATIENCE,
    viewport: { width: 1280, height: 800 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? 'chromium',
      // CI runs as root, whose Chromium has no sandbox.
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    },
  },
});
