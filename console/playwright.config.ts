// The tests in a browser. `cargo xtask test` starts what they need and says where it is; see tests/world.ts.
import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  outputDir: '../target/browser',
  // One control plane and two cores: tests side by side would only wait for each other.
  workers: 1,
  timeout: 60_000,
  expect: { timeout: 15_000 },
  forbidOnly: true,
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    ...(process.env.PINTLE_CONSOLE ? { baseURL: process.env.PINTLE_CONSOLE } : {}),
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
