// What the tests run against, and a page that fails its test when it breaks a rule that all pages keep: the policies of the browser, no
// error in its console, and nothing from elsewhere.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { test as base, expect, type BrowserContext, type Page } from '@playwright/test';
import { CLUSTER_PATIENCE } from './patience';
import { Wire } from './wire';

export const env = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: start the tests with \`cargo xtask test --browser .\``);
  return value;
};

/** The address of the local console, with its secret. */
export const ADDRESS = env('PINTLE_CONSOLE');
/** The console as it is in a cluster. */
export const IN_CLUSTER = env('PINTLE_CONSOLE_IN_CLUSTER');
/** Tokens of two people of the namespace `console-tests`. */
export const TOKEN = { editor: env('PINTLE_TOKEN_EDITOR'), viewer: env('PINTLE_TOKEN_VIEWER') };
export const GUESTS = env('PINTLE_GUESTS');
export const LOGS = env('PINTLE_LOGS');

/** Where the local console is. */
export const ORIGIN = new URL(ADDRESS).origin;

/** Signs a page in to the local console. */
export async function signIn(page: Page): Promise<void> {
  await page.goto(ADDRESS);
  await expect(page.getByRole('navigation').first()).toBeVisible();
}

/** What a program shows of the login of a page. */
export const bearer = (page: Page): Promise<{ authorization: string }> => page.evaluate(() => ({ authorization: `Bearer ${sessionStorage.getItem('pintle-token')}` }));

/** With what status the console answers what a page asks. */
const statusOf = (page: Page, path: string, asked: { method?: string; headers: Record<string, string>; body?: string }): Promise<number> =>
  page.evaluate(async ({ path, asked }) => (await fetch(path, asked)).status, { path, asked });

/** Waits until the local console can look into modules: before it has compiled one, it refuses that. */
export async function untilEngineStarted(page: Page): Promise<void> {
  const asked = { method: 'PUT', headers: { ...(await bearer(page)), 'content-type': 'application/wasm' }, body: 'no module' };
  await expect.poll(() => statusOf(page, '/api/v1/modules/no-module?dryRun=All', asked), { message: 'the engine has started' }).not.toBe(503);
}

/** Waits until the local console serves the documents of Darkrooms. */
export async function untilServed(page: Page): Promise<void> {
  const asked = { headers: await bearer(page) };
  await expect.poll(() => statusOf(page, '/darkrooms?limit=1', asked), { message: 'the View is served', timeout: CLUSTER_PATIENCE }).toBe(200);
}

/** The path of requests that are no page's own, and a mark in whatever notes requests. */
export const MARK = '/api/v1/session?mark';

/**
 * Asks from within a page, one request after the other. If the page itself asked without end, it would have asked about as often by the end
 * of that: so it can be told that something does not happen.
 */
export const askMarks = (page: Page): Promise<void> => page.evaluate(async (path) => {
  for (let asked = 0; asked < 30; asked += 1) await fetch(path);
}, MARK);

/** Runs kubectl as the administrator, and returns what it printed. */
export const kubectl = (...words: string[]): string => run('KUBECTL', words);

/** Applies an object as the administrator. */
export const apply = (object: unknown): string => run('KUBECTL', ['apply', '-f', '-'], JSON.stringify(object));

/** Creates an object that is too large to be applied, which would keep it twice. */
export const create = (object: unknown): string => run('KUBECTL', ['create', '-f', '-'], JSON.stringify(object));

/** Writes the status of an object, as its controller would. */
export function replaceStatus(object: { apiVersion: string; kind: string; metadata: { name: string; namespace: string } }, status: unknown): void {
  const { name, namespace } = object.metadata;
  const live = () => JSON.parse(kubectl('get', `${object.kind}.${object.apiVersion.split('/').reverse().join('.')}`, name, '-n', namespace, '-o', 'json')) as object;
  for (const begun = Date.now(); ; ) {
    try {
      run('KUBECTL', ['replace', '--subresource=status', '-f', '-'], JSON.stringify({ ...live(), status }));
      return;
    } catch (error) {
      // Somebody else wrote in between.
      if (Date.now() - begun > CLUSTER_PATIENCE || !String(error).includes('Conflict')) throw error;
    }
  }
}

/** Runs pintle as the administrator. */
export const pintle = (...words: string[]): string => run('PINTLE', words);

/** Runs a program. One that waits for what never comes is ended: no limit of Playwright's reaches it. */
function run(program: string, words: string[], input = ''): string {
  return execFileSync(env(program), words, {
    input, encoding: 'utf8', stdio: 'pipe', maxBuffer: 64 * 1024 * 1024, timeout: CLUSTER_PATIENCE, killSignal: 'SIGKILL', env: { ...process.env, KUBECONFIG: env('KUBECONFIG') },
  });
}

/** Waits until what is seen of the cluster is as it should be. The error says what was seen last: that a look fails may pass by itself, too. */
export async function until(what: string, see: () => string, isSo: (seen: string) => boolean): Promise<void> {
  await expect(() => {
    let seen: string;
    try {
      seen = see();
      if (isSo(seen)) return;
    } catch (error) {
      seen = String(error);
    }
    throw new Error(`not yet: ${what}; at last: ${seen === '' ? 'nothing' : seen}`);
  }).toPass({ timeout: CLUSTER_PATIENCE });
}

/** Why a root is ready or not, as its status says; nothing, before its logic was asked. */
export const reasonOf = (root: string): string => kubectl('get', root, '--ignore-not-found', '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}');

/** The page that lists the Darkrooms, and below which theirs are. */
export const DARKROOMS = '/console/kinds/deployments.example.com/v1alpha1/darkrooms';

/** The input of the name of a new object. */
export const nameInput = (page: Page) => page.getByRole('textbox', { name: 'Name', exact: true }).first();

/** The input of one of the types that a Darkroom may have. */
export const typeInput = (page: Page, type: string) => page.getByRole('radio', { name: type, exact: true });

/** A Darkroom that needs nothing else. */
export const darkroom = (name: string, namespace = 'default') => ({
  apiVersion: 'deployments.example.com/v1alpha1',
  kind: 'Darkroom',
  metadata: { name, namespace },
  spec: { version: '0.4.0', source: { type: 'WebFolder', baseUrl: 'https://example.com/images' }, subDomains: [name] },
});

/** What is there before any test. */
const SAMPLES = fileURLToPath(new URL('../../deploy/samples', import.meta.url));

/** Makes the cluster as it was before any test: what a test that failed has left there would be in the way of the next. */
function tidy(): void {
  const names = (...words: string[]) => kubectl('get', ...words, '-o', 'name').split('\n').filter(Boolean);
  kubectl('apply', '-f', SAMPLES);
  const module = kubectl('get', 'reconciler', 'darkroom', '-o', 'jsonpath={.spec.module}');
  kubectl('wait', `--for=jsonpath={.status.active.module}=${module}`, 'reconciler/darkroom', `--timeout=${Math.ceil(CLUSTER_PATIENCE / 1000)}s`);
  const samples = names('-f', SAMPLES);
  for (const namespace of ['default', 'console-tests']) {
    const left = names('darkrooms,webservers,configmonitors', '-n', namespace).filter((name) => !samples.includes(name));
    if (left.length > 0) kubectl('delete', '-n', namespace, ...left);
  }
  const used = kubectl('get', 'reconcilers,views', '-o', 'jsonpath={.items[*].spec.module}').split(' ');
  const left = names('modules').filter((name) => !used.includes(name.split('/')[1] ?? ''));
  if (left.length > 0) kubectl('delete', ...left);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds wrong, in one line each. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { violations } = await (window as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }).axe.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`);
  });
}

/** What a page did that no page may do. `own`: the consoles that it may ask. */
export function watched(page: Page, own = [ORIGIN, new URL(IN_CLUSTER).origin]): string[] {
  const wrong: string[] = [];
  page.on('console', (message) => {
    // A refused request is said here too; the tests look at what the page makes of it.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) wrong.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => wrong.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith('http') && !own.includes(origin)) wrong.push(`asks ${origin}`);
  });
  return wrong;
}

/** A page of this context that is signed in to the local console, and fails the test if it breaks a rule. */
async function signedIn(context: BrowserContext, use: (page: Page) => Promise<void>): Promise<void> {
  const page = await context.newPage();
  const wrong = watched(page);
  await signIn(page);
  await use(page);
  expect(wrong, 'the page broke a rule').toEqual([]);
}

interface Fixtures {
  /** A test that failed makes no other fail. */
  tidied: void;
  rules: string[];
  /** A page that is signed in to the local console as the administrator. */
  console: Page;
  /** The same in another browser, which shares nothing with the first. */
  other: Page;
  /** What is between `wired` and the console. */
  wire: Wire;
  wired: Page;
}

/** Every page keeps the rules. */
export const test = base.extend<Fixtures>({
  tidied: [
    async ({}, use, info) => {
      await use();
      if (info.status !== info.expectedStatus) tidy();
    },
    { auto: true },
  ],
  rules: [
    // Its rules are looked at before it is tidied, which is for a test that has broken one, too.
    async ({ page, tidied: _ }, use) => {
      const wrong = watched(page);
      await page.addInitScript(() => {
        document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`));
      });
      await use(wrong);
      expect(wrong, 'the page broke a rule').toEqual([]);
    },
    { auto: true },
  ],
  console: async ({ page }, use) => {
    await signIn(page);
    await use(page);
  },
  other: async ({ browser }, use) => {
    const context = await browser.newContext();
    await signedIn(context, use);
    await context.close();
  },
  wire: async ({}, use) => {
    const wire = await Wire.open();
    await use(wire);
    await wire.close();
  },
  wired: async ({ browser, wire }, use) => {
    const context = await browser.newContext({ proxy: { server: wire.address } });
    await signedIn(context, use);
    await context.close();
  },
});

export { expect };
