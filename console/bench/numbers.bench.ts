// What the console costs, each figure beside the same done directly at the API server, in one run. Prints a table, and fails only when
// something cannot be measured: a target that is missed is said in the table.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Agent as PlainAgent, type ClientRequest, type IncomingMessage, request as plainRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { DARKROOMS as HOME, bearer, expect, test, ORIGIN, kubectl } from '../tests/world';

const ROOTS = 1_000;
const SAMPLES = 20;
const STREAMS = 50;
const REST_SECONDS = 60;
const PLANS = 5;
const MANY = 10_000;

const DARKROOMS = '/apis/deployments.example.com/v1alpha1/namespaces/default/darkrooms';
const root = (number: number) => `bench-${String(number).padStart(5, '0')}`;

/** The API server, with the certificate of the administrator. */
const direct = (() => {
  const config = JSON.parse(kubectl('config', 'view', '--raw', '--flatten', '--minify', '-o', 'json'));
  const bytes = (text?: string) => (text === undefined ? undefined : Buffer.from(text, 'base64'));
  const { cluster } = config.clusters[0];
  const { user } = config.users[0];
  const agent = new Agent({
    keepAlive: true,
    ca: bytes(cluster['certificate-authority-data']),
    cert: bytes(user['client-certificate-data']),
    key: bytes(user['client-key-data']),
  });
  return { server: cluster.server as string, agent };
})();

/** The console, over one connection too. */
const plain = new PlainAgent({ keepAlive: true });

/** The text of an answer, once all of it is there. */
function textOf(begin: (hear: (answer: IncomingMessage) => void) => ClientRequest, body?: unknown): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = begin((answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part) => (text += part)).on('end', () => ((answer.statusCode ?? 500) < 300 ? resolve(text) : reject(new Error(text))));
    });
    asked.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const ask = (method: string, path: string, body?: unknown, type = 'application/json') =>
  textOf((hear) => request(direct.server + path, { method, agent: direct.agent, headers: { 'content-type': type } }, hear), body);

async function listedByRest(headers: Record<string, string>): Promise<number> {
  const path = `/darkrooms?namespace=default&limit=${ROOTS}`;
  return JSON.parse(await textOf((hear) => plainRequest(ORIGIN + path, { agent: plain, headers }, hear))).items.length;
}

async function create(first: number, end: number): Promise<void> {
  for (let from = first; from < end; from += 32) {
    await Promise.all(Array.from({ length: Math.min(32, end - from) }, (_, index) =>
      ask('POST', DARKROOMS, {
        apiVersion: 'deployments.example.com/v1alpha1',
        kind: 'Darkroom',
        metadata: { name: root(from + index) },
        spec: { source: { type: 'WebFolder', baseUrl: 'https://example.com/images' }, subDomains: [root(from + index)] },
      })));
  }
}

const median = (values: number[], share = 0.5): number => values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? Number.NaN;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** When what a visit begins with is there, by the clock of the page, in milliseconds. */
interface Stages {
  page: number;
  asked: number;
  answered: number;
  scripts: number;
}

/** Runs in the page. */
function stagesOf(): Stages {
  const [visit] = performance.getEntriesByType('navigation') as PerformanceNavigationTiming[];
  const resources = performance.getEntriesByType('resource') as PerformanceResourceTiming[];
  const ends = (of: PerformanceResourceTiming[]) => Math.max(...of.map((resource) => resource.responseEnd));
  const firsts = resources.filter((resource) => resource.initiatorType === 'fetch').slice(0, 2);
  const scripts = resources.filter((resource) => /\/(main|chunk)-/.test(resource.name) && resource.initiatorType !== 'other');
  return { page: visit?.responseEnd ?? Number.NaN, asked: Math.min(...firsts.map((first) => first.startTime)), answered: ends(firsts), scripts: ends(scripts) };
}

test('the numbers', async ({ console: page }) => {
  const say = (what: string, found: string, isMet: boolean): void => void process.stdout.write(`${(isMet ? 'met' : 'MISSED').padEnd(7)} ${what}: ${found}\n`);
  await create(0, ROOTS);

  // 1. The list of the page of Darkrooms, beside the API server's.
  const row = page.getByRole('link', { name: root(0), exact: true });
  // The page's own clock, which begins with the navigation: how long the test needs to hear of it does not count.
  await page.addInitScript((name) => {
    const seen = () => [...document.querySelectorAll('a')].some((link) => link.textContent?.trim() === name);
    const observer = new MutationObserver(() => {
      if (!seen()) return;
      observer.disconnect();
      (window as unknown as { benchRow: number }).benchRow = performance.now();
    });
    observer.observe(document, { subtree: true, childList: true, characterData: true });
  }, root(0));
  const shown = await bearer(page);
  const [opened, listed, rest]: [number[], number[], number[]] = [[], [], []];
  const stages: Stages[] = [];
  await page.goto(HOME);
  await expect(row).toBeVisible();
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    listed.push(await timed(() => ask('GET', DARKROOMS)));
    rest.push(await timed(async () => expect(await listedByRest(shown)).toBe(ROOTS)));
    await page.goto(HOME, { waitUntil: 'commit' });
    await row.waitFor();
    opened.push(await page.evaluate(() => (window as unknown as { benchRow: number }).benchRow));
    stages.push(await page.evaluate(stagesOf));
  }
  const beside = (one: number, other: number, most: number) => `${one.toFixed(0)} ms; direct ${other.toFixed(0)} ms: ${(one / other).toFixed(2)} x (at most ${most})`;
  say('navigation to the first row', beside(median(opened), median(listed), 2), median(opened) <= 2 * median(listed));
  const stage = (of: (stages: Stages) => number) => `${median(stages.map(of)).toFixed(0)} ms`;
  process.stdout.write(`        the page has arrived at ${stage((of) => of.page)}, its first rows are asked for at ${stage((of) => of.asked)} and there at ${stage((of) => of.answered)}, its scripts at ${stage((of) => of.scripts)}\n`);
  say('REST list of 1,000', beside(median(rest), median(listed), 1.6), median(rest) <= 1.6 * median(listed));

  // 2. An edit in the page, beside a watch of the API server itself.
  await page.getByRole('button', { name: 'Rows' }).click();
  let seen: (version: string) => void = () => undefined;
  await page.exposeFunction('benchSaw', (text: string) => seen(text));
  await page.evaluate((name) => {
    new MutationObserver(() => {
      const link = [...document.querySelectorAll('a')].find((link) => link.textContent?.trim() === name);
      const text = link?.closest('tr,li,article')?.textContent ?? '';
      const found = /bench-version-\d+-end/.exec(text)?.[0];
      if (found) (window as unknown as { benchSaw(text: string): void }).benchSaw(found);
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
  }, root(0));
  const later: number[] = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const version = `bench-version-${sample}-end`;
    const inPage = new Promise<number>((resolve, reject) => {
      seen = (text) => text === version && resolve(performance.now());
      setTimeout(() => reject(new Error(`${version} does not come to the page`)), 10_000);
    });
    const watched = new Promise<number>((resolve, reject) => {
      const path = `${DARKROOMS}?watch=1&fieldSelector=metadata.name=${root(0)}`;
      const asked = request(direct.server + path, { agent: direct.agent }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part) => {
          text += part;
          if (text.includes(version)) resolve(performance.now()), asked.destroy();
        });
      });
      asked.on('error', reject).end();
    });
    await page.waitForTimeout(200);
    await ask('PATCH', `${DARKROOMS}/${root(0)}`, { spec: { version } }, 'application/merge-patch+json');
    later.push((await inPage) - (await watched));
  }
  say('an edit in the page', `p50 ${median(later).toFixed(0)} ms, p90 ${median(later, 0.9).toFixed(0)} ms after the watch (p50 at most 100)`, median(later) <= 100);

  await page.getByRole('button', { name: 'Cards' }).click();

  // 3. A plan of all of them. Nothing of theirs is there, so that every child is a change.
  const planned: number[] = [];
  for (let plan = 0; plan < PLANS; plan += 1) {
    const began = performance.now();
    const { status, stdout, stderr } = spawnSync(process.env.PINTLE!, ['plan', 'darkroom', '-o', 'summary'], { encoding: 'utf8' });
    planned.push(performance.now() - began);
    // 1: something would change.
    expect(status, stderr).toBe(1);
    expect(stdout).toContain(String(ROOTS));
  }
  say(`a plan of ${ROOTS} roots`, `p50 ${(median(planned) / 1000).toFixed(1)} s of ${PLANS} (at most 10)`, median(planned) <= 10_000);

  // 4. Fifty open streams at rest.
  const process_ = Number(process.env.PINTLE_CONSOLE_PID);
  await page.goto('about:blank');
  const end = new AbortController();
  for (let stream = 0; stream < STREAMS; stream += 1) {
    const watch = encodeURIComponent(`deployments.example.com/v1alpha1/darkrooms;fields=.spec.source.type,.spec.version`);
    const answer = await fetch(`${ORIGIN}/api/v1/stream?watch=${watch}`, { headers: shown, signal: end.signal });
    expect(answer.status).toBe(200);
    const reader = answer.body!.getReader();
    void (async () => { while (!(await reader.read()).done); })().catch(() => undefined);
  }
  await page.waitForTimeout(5_000);
  // As the user: the gateway, which is there too, has an account of its own.
  const asked = () => readFileSync(process.env.PINTLE_AUDIT!, 'utf8').split('\n').filter((line) => line.includes('"username":"kubernetes-admin"') && line.includes('"userAgent":"pintle') && line.includes('ResponseComplete')).length;
  const before = asked();
  await page.waitForTimeout(REST_SECONDS * 1_000);
  const requests = asked() - before;
  const kibibytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${process_}/status`, 'utf8'))?.[1]);
  end.abort();
  say(`${STREAMS} streams at rest for ${REST_SECONDS} s`, `${requests} requests (0)`, requests === 0);
  say('memory of the console with them', `${(kibibytes / 1024).toFixed(1)} MiB (at most 80)`, kibibytes <= 80 * 1024);

  // 5. Ten thousand in the list: how long the page is busy at a stretch while it reads them, and while somebody scrolls to the end.
  await create(ROOTS, MANY);
  await page.addInitScript(() => {
    const tasks: number[] = [];
    (window as unknown as { benchTasks: number[] }).benchTasks = tasks;
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask', buffered: true });
  });
  const whole = await timed(async () => {
    await page.goto(HOME, { waitUntil: 'commit' });
    await expect(page.getByText(/10,00\d/).first()).toBeVisible({ timeout: 60_000 });
  });
  await page.mouse.move(600, 500);
  for (let turn = 0; turn < 50; turn += 1) {
    await page.mouse.wheel(0, 20_000);
    await page.waitForTimeout(50);
  }
  await expect(page.getByRole('link', { name: root(MANY - 1), exact: true })).toBeVisible();
  const busy = await page.evaluate(() => (window as unknown as { benchTasks: number[] }).benchTasks);
  const longest = Math.max(0, ...busy);
  say(`${MANY} in the list`, `all there after ${(whole / 1000).toFixed(1)} s; busy for ${longest.toFixed(0)} ms at most at a stretch (200)`, longest <= 200);
});
