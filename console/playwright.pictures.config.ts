// Takes the pictures of docs/: `cargo xtask console --pictures`.
import { defineConfig } from '@playwright/test';
import tests from './playwright.config';

export default defineConfig({ ...tests, testDir: 'pictures', testMatch: '*.pictures.ts', retries: 0, use: { ...tests.use, trace: 'off', deviceScaleFactor: 1 } });
