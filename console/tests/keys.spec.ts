// The keys of a bucket, from the form and from REST: where they are written they stay, and everything else that the console answers, shows or
// writes down has neither them nor what a Secret makes of them.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { CLUSTER_PATIENCE } from './patience';
import { DARKROOMS, GUESTS, LOGS, ORIGIN, bearer, darkroom, expect, kubectl, nameInput, pintle, test, typeInput, until, untilEngineStarted, untilServed } from './world';

const KIND = 'deployments.example.com/v1alpha1/darkrooms';
const KEYS = {
  form: { accessKey: 'AKIAFORM6RZ4QW1T', secretKey: 'form/Secret+Of-No-Log-93517' },
  rest: { accessKey: 'AKIAREST8XV2MN5B', secretKey: 'rest/Secret+Of-No-Log-28460' },
  refused: { accessKey: 'AKIAREFUSED7PL3C', secretKey: 'refused/Secret+Of-No-Log-70924' },
};

/** A key, and as a Secret has it. */
const written = (keys: readonly string[]): string[] => keys.flatMap((key) => [key, JSON.stringify(key).slice(1, -1), Buffer.from(key).toString('base64'), encodeURIComponent(key)]);
const ALL = Object.values(KEYS).flatMap(({ accessKey, secretKey }) => [accessKey, secretKey]);
const SECRETS = ALL.map((key) => Buffer.from(key).toString('base64'));

const found = (text: string, what: readonly string[]): string[] => what.filter((key) => text.includes(key));

/** The logs of what is ours: of the host, the gateway and the console. */
function logs(): string {
  const ours = readdirSync(LOGS).filter((file) => /^(pintle|console)/.test(file));
  expect(ours.length, 'logs of the host, the gateway and the console').toBeGreaterThanOrEqual(3);
  return ours.map((file) => readFileSync(join(LOGS, file), 'utf8')).join('\n');
}

test('keys that are typed into the form are in no log and on no page, and only the object itself brings them to a browser', async ({ wired: page, wire }) => {
  test.slow();
  const name = 'keys-of-form';
  await untilEngineStarted(page);
  await page.goto(`${DARKROOMS}/new`);
  await nameInput(page).fill(name);
  await typeInput(page, 'S3').check();
  await page.getByLabel('Bucket').fill('pictures');
  await page.getByLabel('Region').fill('eu-central-1');
  await page.getByLabel('Access key').fill(KEYS.form.accessKey);
  await page.getByLabel('Secret key').fill(KEYS.form.secretKey);
  await page.getByLabel('Sub domains').fill(name);
  await page.getByLabel('Sub domains').press('Enter');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText(`${name}.darkroom.example.com`).first()).toBeVisible();
  // The Secret that the guest makes of them is there: there is something to be hidden.
  const inSecret = written(Object.values(KEYS.form)).filter((one) => SECRETS.includes(one));
  await until('the Secret has both', () => String(found(kubectl('get', 'secrets', '-o', 'yaml'), inSecret).length), (many) => many === '2');

  const own = `${DARKROOMS}/default/${name}`;
  const root = `/console/engine/roots/${KIND}/default/${name}`;
  const paths = ['/console/', DARKROOMS, own, `${own}?tab=events`, `${own}?tab=yaml`, '/console/engine', '/console/engine/events', '/console/engine/reconcilers/darkroom', root, `${root}?tab=events`, `${root}?tab=yaml`, `${root}?tab=inout`];
  for (const path of paths) {
    await page.goto(path);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expect(page.locator('.skeleton')).toHaveCount(0);
    // All that is in the document, whether it can be seen or not.
    expect(found(await page.content(), written(ALL)), path).toEqual([]);
  }
  await expect(page.getByText('Of Secrets only the keys are shown.')).toBeVisible();

  // A plan, which computes all children anew, and shows how they would differ.
  pintle('push', 'darkroom-of-keys', join(GUESTS, 'darkroom-next.wasm'), '--wait', `--timeout=${Math.ceil(CLUSTER_PATIENCE / 1000)}s`);
  await page.goto('/console/engine/reconcilers/darkroom/plan');
  await page.getByLabel('Module', { exact: true }).selectOption('darkroom-of-keys');
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await expect(page.getByRole('region', { name: 'Swap' })).toBeVisible();
  expect(found(await page.content(), written(ALL)), 'the plan').toEqual([]);

  // An upload, which is checked.
  await page.goto('/console/engine/modules');
  await page.locator('input[type=file]').setInputFiles({ name: 'darkroom-next.wasm', mimeType: 'application/wasm', buffer: readFileSync(join(GUESTS, 'darkroom-next.wasm')) });
  await expect(page.getByLabel('Name of the Module')).toBeVisible();

  // The form of the object itself has to have them.
  await page.goto(`${own}/edit`);
  await expect(page.getByLabel('Access key')).toHaveValue(KEYS.form.accessKey);
  await expect(page.getByLabel('Secret key')).toHaveAttribute('type', 'password');

  expect(wire.passed.length).toBeGreaterThan(50);
  const holders = wire.passed.filter(({ body }) => found(body, written(ALL)).length > 0).map(({ method, path }) => `${method} ${decodeURIComponent(path)}`);
  const itself = new RegExp(`^(GET|POST) /api/v1/objects/${KIND}/namespaces/default(/${name})?(/inspect)?(\\?dryRun=All)?$|^GET /api/v1/stream\\?.*name=${name};whole=true`);
  expect(holders.filter((holder) => !itself.test(holder)), 'what else has brought a key to the browser').toEqual([]);
  expect(wire.passed.filter(({ body }) => found(body, SECRETS).length > 0).map(({ path }) => path), 'what has brought the value of a Secret').toEqual([]);
  expect(found(wire.passed.map(({ path }) => path).join('\n'), written(ALL)), 'no address has a key').toEqual([]);
  expect(found(logs(), written(ALL)), 'the logs').toEqual([]);
  expect(found(kubectl('get', 'events', '-A', '-o', 'json'), written(ALL)), 'the events of the cluster').toEqual([]);
  kubectl('delete', 'darkroom', name);
  kubectl('delete', 'module', 'darkroom-of-keys');
});

test('keys that are written by REST are in no answer and in no log, also where the document is refused', async ({ console: page }) => {
  const shown = await bearer(page);
  await untilServed(page);
  const name = 'keys-of-rest';
  const source = { type: 'S3', bucket: 'pictures', region: 'eu-central-1', ...KEYS.rest };
  const document = { name, namespace: 'default', source, subDomains: [name] };
  const answers: string[] = [];
  const ask = async (method: string, path: string, data?: unknown, type = 'application/json') => {
    const answer = await page.request.fetch(ORIGIN + path, { method, headers: { ...shown, 'content-type': type, accept: 'application/json' }, ...(data === undefined ? {} : { data: JSON.stringify(data) }) });
    answers.push(`${JSON.stringify(answer.headers())} ${await answer.text()}`);
    return answer.status();
  };
  const at = `/darkrooms/${name}?namespace=default`;
  expect(await ask('POST', '/darkrooms?dryRun=All', document)).toBe(200);
  expect(await ask('POST', '/darkrooms', document)).toBe(200);
  expect(await ask('POST', '/darkrooms', document), 'there is one already').toBe(409);
  expect(await ask('GET', at)).toBe(200);
  expect(await ask('GET', '/darkrooms?namespace=default&search=keys-of')).toBe(200);
  expect(await ask('PATCH', at, { source: { secretKey: KEYS.rest.secretKey }, cacheTTL: 60 }, 'application/merge-patch+json')).toBe(200);
  const followed = await page.evaluate(async (shown) => {
    const answer = await fetch('/darkrooms?watch=true&namespace=default', { headers: { ...shown, accept: 'text/event-stream' } });
    const reader = answer.body?.getReader();
    let text = '';
    while (reader && !text.includes('event: bookmark')) text += new TextDecoder().decode((await reader.read()).value);
    await reader?.cancel();
    return text;
  }, shown);
  expect(followed).toContain(name);
  answers.push(followed);
  // They were stored: what is not shown is not lost.
  expect(JSON.parse(kubectl('get', 'darkroom', name, '-o', 'jsonpath={.spec.source}'))).toMatchObject(KEYS.rest);

  // Refused by the guest, by the schema, by the reader, and as something that cannot be read at all.
  const wrong = { ...document, name: 'keys-refused', source: { ...source, ...KEYS.refused } };
  expect(await ask('POST', '/darkrooms', { ...wrong, source: { ...wrong.source, region: '' } })).toBe(422);
  expect(await ask('POST', '/darkrooms', { ...wrong, source: { ...wrong.source, pathPrefix: 'x' } })).toBe(422);
  expect(await ask('POST', '/darkrooms', { ...wrong, source: { ...wrong.source, credentialsSecretRef: { name: 'keys' } } })).toBe(422);
  expect(await ask('POST', '/darkrooms', { ...wrong, source: { ...wrong.source, accessKey: { of: KEYS.refused.accessKey } } })).toBeGreaterThanOrEqual(400);
  expect(await ask('POST', '/darkrooms', { ...wrong, source: { ...wrong.source, secretKey: KEYS.refused.secretKey.repeat(60) } })).toBe(422);
  expect(await ask('POST', '/darkrooms?fieldValidation=Strict', { ...wrong, source: { ...wrong.source, keys: KEYS.refused } })).toBeGreaterThanOrEqual(400);
  expect(await ask('POST', '/darkrooms', [wrong])).toBe(400);
  const torn = await page.request.post(`${ORIGIN}/darkrooms`, { headers: { ...shown, 'content-type': 'application/json' }, data: JSON.stringify(wrong).slice(0, -2) });
  answers.push(await torn.text());
  expect(torn.status()).toBe(400);

  // And by the way of objects: the answers to what is refused name the field, not what stood in it.
  const objects = `/api/v1/objects/${KIND}/namespaces/default`;
  const object = (source: object) => ({ ...darkroom('keys-refused'), spec: { source, subDomains: ['keys-refused'] } });
  expect(await ask('POST', objects, object({ ...source, ...KEYS.refused, secretKey: KEYS.refused.secretKey.repeat(60) }))).toBe(422);
  expect(await ask('POST', objects, object({ ...source, accessKey: { of: KEYS.refused.accessKey } }))).toBeGreaterThanOrEqual(400);

  for (const answer of answers) expect(found(answer, written(ALL)), answer.slice(0, 300)).toEqual([]);
  expect(found(logs(), written(ALL)), 'the logs').toEqual([]);
  expect(kubectl('get', 'darkrooms', '-A', '-o', 'name')).not.toContain('keys-refused');
  kubectl('delete', 'darkroom', name);
});
