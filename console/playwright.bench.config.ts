// The console's numbers: `cargo xtask bench --only console`.
import { defineConfig } from '@playwright/test';
import tests from './playwright.config';

export default defineConfig({ ...tests, testDir: 'bench', testMatch: '*.bench.ts', timeout: 600_000, retries: 0, use: { ...tests.use, actionTimeout: 0, trace: 'off' } });
