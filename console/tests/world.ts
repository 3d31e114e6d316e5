// What the tests run against, and a page that fails its test when it breaks a rule that all pages keep: the policies of the browser, no
// error in its console, and nothing from elsewhere.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test as base, expect, type BrowserContext, type Page } from '@playwright/test';
import { Wire } from './wire';

export const env = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: start the tests with \`cargo xtask test --browser .\``);
  return value;
};

/** What `pintle console` has printed so far. */
const SAID = env('PINTLE_CONSOLE_SAID');
/** The console as it is in a cluster. */
export const IN_CLUSTER = env('PINTLE_CONSOLE_IN_CLUSTER');
/** Tokens of two people of the namespace `console-tests`. */
export const TOKEN = { editor: env('PINTLE_TOKEN_EDITOR'), viewer: env('PINTLE_TOKEN_VIEWER') };
export const GUESTS = env('PINTLE_GUESTS');
export const LOGS = env('PINTLE_LOGS');

/** Where the local console is. */
export const ORIGIN = new URL(env('PINTLE_CONSOLE')).origin;

/** The last address in what a console printed: its secret signs in once, and then the console prints the next. */
export function addressIn(said: string): string {
  const found = /.*(http:\/\/\S+#\w+)\n/s.exec(said)?.[1];
  if (!found) throw new Error(`no address: ${said}`);
  return found;
}

/** The address that the local console printed last. */
export const address = (): string => addressIn(readFileSync(SAID, 'utf8'));

/** Signs a page in to the local console. */
export async function signIn(page: Page): Promise<void> {
  const used = address();
  await page.goto(used);
  await expect(page.getByRole('navigation').first()).toBeVisible();
  // Whoever signs in next finds an address that is good.
  await expect.poll(address, { message: 'the console prints the next address' }).not.toBe(used);
}

/** What a program shows of the login of a page, beside the cookie that it shares. */
export const bearer = (page: Page): Promise<{ authorization: string }> => page.evaluate(() => ({ authorization: `Bearer ${localStorage.getItem('pintle-token')}` }));

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
  for (let left = 5; ; left -= 1) {
    try {
      run('KUBECTL', ['replace', '--subresource=status', '-f', '-'], JSON.stringify({ ...live(), status }));
      return;
    } catch (error) {
      // Somebody else wrote in between.
      if (left === 0 || !String(error).includes('Conflict')) throw error;
    }
  }
}

/** Runs pintle as the administrator. */
export const pintle = (...words: string[]): string => run('PINTLE', words);

function run(program: string, words: string[], input = ''): string {
  return execFileSync(env(program), words, { input, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, env: { ...process.env, KUBECONFIG: env('KUBECONFIG') } });
}

/** Waits until a question about the cluster is answered with yes. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  await expect.poll(holds, { message: what, timeout: 30_000 }).toBe(true);
}

/** A Darkroom that needs nothing else. */
export const darkroom = (name: string, namespace = 'default') => ({
  apiVersion: 'deployments.example.com/v1alpha1',
  kind: 'Darkroom',
  metadata: { name, namespace },
  spec: { version: '0.4.0', source: { type: 'WebFolder', baseUrl: 'https://example.com/images' }, subDomains: [name] },
});

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
  rules: [
    async ({ page }, use) => {
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
