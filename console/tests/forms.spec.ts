// Every rule of a form is said at its field, before the object is saved: the API server and the logic know them, and are asked when a field
// is left. Who goes around the form is refused at the same fields.
import { type ElementHandle, type Locator, type Page } from '@playwright/test';
import { DARKROOMS, ORIGIN, apply, bearer, darkroom, expect, kubectl, reasonOf, test, typeInput, until, untilEngineStarted, untilServed, violations } from './world';

/** What is typed into a field, by its label, and what is then said there. */
type Rule = readonly [field: string, typed: string, says: string | RegExp];

const long = (length: number) => 'a'.repeat(length);
const tooLong = (most: number) => [long(most + 1), `must have at most ${most} characters`] as const;

const NAME = 'a lowercase RFC 1123 subdomain must consist of';
const ADDRESS = 'must be an address that begins with http:// or https://';
const LABEL = "must be one DNS label: lower-case letters, digits and inner '-', without dots";
const TAG = 'must be a version such as 0.4.0, or an image tag such as latest';

const COMMON: Rule[] = [
  ['Name', '', 'is required'],
  ['Name', 'Photos', NAME],
  ['Sub domains', '', 'is required'],
  ['Sub domains', 'a.b', `a.b ${LABEL}`],
  ['Sub domains', long(64), 'must have at most 63 characters'],
  ['Sub domains', Array.from({ length: 65 }, (_, at) => `d${at}`).join(' '), 'must have at most 64 items'],
  ['Version', '-1', TAG],
  ['Version', ...tooLong(127)],
  ['TTL seconds', '-1', /greater than or equal to 0/],
  ['TTL seconds', '31536001', /less than or equal to 31536000/],
  ['TTL seconds', 'an hour', 'must be of type integer'],
];

const WEB_FOLDER: Rule[] = [
  ['Base URL', '', "baseUrl can't be empty"],
  ['Base URL', 'ftp://example.com', ADDRESS],
  ['Base URL', `https://${long(2041)}`, 'must have at most 2048 characters'],
];

const BUCKET: Rule[] = [
  ['Bucket', '', 'is required'],
  ['Bucket', ...tooLong(255)],
  ['Region', '', 'required fields missing: region'],
  ['Region', ...tooLong(255)],
  ['Path prefix', 'images', "must begin with '/'"],
  ['Path prefix', `/${long(1024)}`, 'must have at most 1024 characters'],
  ['Endpoint', ...tooLong(2048)],
  ['Access key', '', 'required fields missing: accessKey'],
  ['Access key', ...tooLong(1024)],
  ['Secret key', ...tooLong(1024)],
  ['Secret', ...tooLong(253)],
];

/** The input of a field. Some labels begin as others do; the star of those that must be given is not read aloud. */
function input(page: Page, field: string): Locator {
  if (field === 'Secret') return page.getByRole('group', { name: 'Credentials secret ref' }).getByRole('textbox', { name: 'Name', exact: true });
  return /^(Image|Name|Key|Configmap)$/.test(field) ? page.getByRole('textbox', { name: field, exact: true }).first() : page.getByLabel(field).first();
}

/** Types into a field, of whatever sort it is, and leaves it. */
async function type(page: Page, field: string, text: string): Promise<void> {
  const found = input(page, field);
  if (/Sub domains/.test(field)) {
    await found.focus();
    for (let chips = await page.getByRole('button', { name: /^Remove / }).count(); chips > 0; chips -= 1) await found.press('Backspace');
    await found.fill(text === '' ? '' : `${text} `);
  } else {
    await found.fill(text);
  }
  await found.blur();
}

/** That a field says this of itself, to those who see it and to those who do not. */
async function says(field: Locator, what: string | RegExp): Promise<void> {
  const words = typeof what === 'string' ? new RegExp(what.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : what;
  await expect(field).toHaveAccessibleDescription(words);
  await expect(field).toHaveAttribute('aria-invalid', 'true');
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? [];
  const shown = field.page().locator(ids.map((id) => `.field-error[id="${id}"]`).join(', '));
  await expect(shown).toHaveText(words);
  await expect(shown).toBeVisible();
  // It stands right below: a description is of no use to somebody who looks for it. Both are measured at once, since the server's answer may
  // move everything in between.
  const { below, down, isSameColumn } = await shown.evaluate((words, input) => {
    const [one, other] = [input.getBoundingClientRect(), words.getBoundingClientRect()];
    return { below: other.top - one.bottom, down: other.top - one.top, isSameColumn: other.left < one.right && one.left < other.right };
  }, (await field.elementHandle()) as ElementHandle<Element>);
  expect(below, 'how far the words are from the field').toBeLessThan(60);
  expect(down, 'the words stand below the field, or in it').toBeGreaterThanOrEqual(0);
  expect(isSameColumn, 'the words stand in the same column').toBe(true);
}

/** Everything that is sent to be stored: what is only tried is left out. */
function stored(page: Page): string[] {
  const sent: string[] = [];
  page.on('request', (request) => {
    if (['POST', 'PUT', 'PATCH'].includes(request.method()) && /\/api\/v1\/objects\//.test(request.url()) && !/dryRun=All|\/inspect/.test(request.url())) sent.push(`${request.method()} ${request.url()}`);
  });
  return sent;
}

/** Goes through the rules of a form that is otherwise right: each is said while it is broken, and no longer than that. */
async function breaks(page: Page, rules: readonly Rule[], right: Readonly<Record<string, string>>): Promise<void> {
  for (const [field, typed, what] of rules) {
    await test.step(`${field}: ${typed.length > 40 ? `${typed.length} characters` : `"${typed}"`}`, async () => {
      await type(page, field, typed);
      await says(input(page, field), what);
      await type(page, field, right[field] ?? '');
      await expect(page.locator('.field-error')).toHaveCount(0);
    });
  }
}

const WITHOUT_TYPE = { Name: 'forms-broken', 'Sub domains': 'forms-broken', Version: '', 'TTL seconds': '' };
const RIGHT = {
  WebFolder: { ...WITHOUT_TYPE, 'Base URL': 'https://example.com/images' },
  S3: { ...WITHOUT_TYPE, 'Bucket': 'pictures', Region: 'eu-central-1', 'Path prefix': '', Endpoint: '', 'Access key': 'AKIAFORMS', 'Secret key': 'forms-secret', Secret: '' },
};

/** The form of a new Darkroom of a type, with everything right. */
async function newDarkroom(page: Page, type_: keyof typeof RIGHT): Promise<Readonly<Record<string, string>>> {
  await page.goto(`${DARKROOMS}/new`);
  await typeInput(page, type_).check();
  const right: Readonly<Record<string, string>> = RIGHT[type_];
  for (const [field, text] of Object.entries(right)) await type(page, field, text);
  return right;
}

test('a web folder: each rule is said at its field before it is saved, and nothing is made', async ({ console: page }) => {
  test.slow();
  await untilEngineStarted(page);
  const sent = stored(page);
  const right = await newDarkroom(page, 'WebFolder');
  await breaks(page, [...COMMON, ...WEB_FOLDER], right);

  // What is about the whole object has no field: it is said above them all.
  await type(page, 'Name', '1st');
  await expect(page.getByRole('alert')).toContainText("the name must be at most 63 lower-case letters, digits and '-', beginning with a letter");
  await type(page, 'Name', 'forms-broken');
  await expect(page.getByRole('alert')).toHaveCount(0);
  expect(sent).toEqual([]);
  expect(kubectl('get', 'darkrooms', '-A', '-o', 'name')).not.toContain('forms-broken');
});

test('what is wrong with a field is said, also where the next one is left before the answer', async ({ console: page }) => {
  await newDarkroom(page, 'WebFolder');
  await page.route(/dryRun=All/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    // The first one is given up meanwhile.
    await route.continue().catch(() => {});
  });
  const asked = page.waitForRequest(/dryRun=All/);
  await type(page, 'Version', '-1');
  await asked;
  await input(page, 'TTL seconds').focus();
  await input(page, 'TTL seconds').blur();
  await says(input(page, 'Version'), TAG);
});

test('a bucket: each rule is said at its field before it is saved and when it is, and nothing is made', async ({ console: page }) => {
  test.slow();
  await untilEngineStarted(page);
  const sent = stored(page);
  const right = await newDarkroom(page, 'S3');
  await breaks(page, BUCKET, right);

  // Who is faster than the asking gets the same from saving, all at once.
  await input(page, 'Region').fill(long(256));
  await input(page, 'TTL seconds').fill('-1');
  await page.getByRole('button', { name: 'Save' }).click();
  await says(input(page, 'Region'), 'must have at most 255 characters');
  await says(input(page, 'TTL seconds'), /greater than or equal to 0/);
  await expect(page.getByText('2 things need another look.')).toBeVisible();
  await expect(page.locator('.field-error')).toHaveCount(2);
  await expect(input(page, 'Region')).toBeFocused();
  expect(await violations(page), 'a form full of errors has no violation that axe knows').toEqual([]);
  expect(sent).toEqual([]);
  expect(kubectl('get', 'darkrooms', '-A', '-o', 'name')).not.toContain('forms-broken');
});

/** Types a text in place of the one in the editor, which is empty until the object has been printed into it. */
async function typeYaml(page: Page, kind: string, text: string): Promise<void> {
  const editor = page.locator('.cm-content').first();
  await expect(editor).toContainText(`kind: ${kind}`);
  await editor.click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
  await expect(editor).toContainText(text.trim().split('\n').at(-1)?.trim() ?? '');
}

test('what only the YAML can break is said at the fields of the form too', async ({ console: page }) => {
  const sent = stored(page);
  await newDarkroom(page, 'WebFolder');
  await page.getByRole('tab', { name: 'YAML' }).click();
  const text = (more: string) => `apiVersion: deployments.example.com/v1alpha1\nkind: Darkroom\nmetadata:\n  name: forms-broken\n  namespace: default\nspec:\n  source:\n    type: Ftp\n  subDomains: [twice, twice]\n  image: ""\n${more}`;
  await typeYaml(page, 'Darkroom', text('  colour: red\n'));
  await page.getByRole('button', { name: 'Save' }).click();
  // What has no field is said above them all.
  await expect(page.getByRole('alert')).toContainText('spec.colour there is no such field');
  await typeYaml(page, 'Darkroom', text(''));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('tab', { name: 'Form' }).click();
  const types = page.getByRole('group', { name: 'Type', exact: true });
  await expect(types).toHaveAccessibleDescription(/must be one of "WebFolder", "S3"/);
  await expect(types).toHaveAttribute('aria-invalid', 'true');
  await says(input(page, 'Sub domains'), /^(?!.*twice twice).*twice stands there twice/);
  await says(input(page, 'Image'), 'should be at least 1 chars long');
  expect(sent).toEqual([]);
});

test('what the form has no field for is named, and leads to its line of the YAML; a field that is named leads to its input', async ({ console: page }) => {
  await newDarkroom(page, 'WebFolder');
  await page.getByRole('tab', { name: 'YAML' }).click();
  await typeYaml(page, 'Darkroom', 'apiVersion: deployments.example.com/v1alpha1\nkind: Darkroom\nmetadata:\n  name: forms-broken\n  namespace: default\nspec:\n  source:\n    type: WebFolder\n    baseUrl: https://example.com\n    colour: red\n  subDomains: [one]\n');
  await page.getByRole('tab', { name: 'Form' }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByRole('button', { name: 'spec.source.colour' }).click();
  await expect(page.getByRole('tab', { name: 'YAML' })).toHaveAttribute('aria-selected', 'true');
  await expect(page.locator('.cm-activeLine')).toHaveText(/colour: red/);
  await typeYaml(page, 'Darkroom', 'apiVersion: deployments.example.com/v1alpha1\nkind: Darkroom\nmetadata:\n  name: forms-broken\n  namespace: default\nspec:\n  source:\n    type: WebFolder\n    baseUrl: https://example.com\n  cache:\n    ttlSeconds: -1\n  subDomains: [one]\n');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('One thing needs another look.')).toBeVisible();
  await page.getByRole('button', { name: 'spec.cache.ttlSeconds' }).click();
  // The form has a field for it, which the YAML was left for.
  await expect(input(page, 'TTL seconds')).toBeFocused();
  await says(input(page, 'TTL seconds'), /greater than or equal to 0/);
});

test('what only the logic knows is said too, and nothing is stored', async ({ console: page }) => {
  await untilEngineStarted(page);
  const sent = stored(page);
  await page.goto('/console/kinds/magalix.com/v1/configmonitors/new');
  await page.getByRole('tab', { name: 'YAML' }).click();
  // The schema allows either way to name a label. That both name the same one, and differ, is known to the guest alone.
  const monitor = (label: string) => `apiVersion: magalix.com/v1\nkind: ConfigMonitor\nmetadata:\n  name: forms-logic\n  namespace: default\nspec:\n  configmap: flaskapp-config\n  podSelector: {app: forms, matchLabels: {app: ${label}}}\n`;
  await typeYaml(page, 'ConfigMonitor', monitor('others'));
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('Line 8: spec.podSelector.matchLabels.app is given twice, with different values')).toBeVisible();
  expect(sent).toEqual([]);
  expect(kubectl('get', 'configmonitors', '-A', '-o', 'name')).not.toContain('forms-logic');
  await typeYaml(page, 'ConfigMonitor', monitor('forms'));
  await page.getByRole('button', { name: 'Save' }).click();
  await until('it is stored', () => kubectl('get', 'configmonitors', '-A', '-o', 'name'), (names) => names.includes('forms-logic'));
  kubectl('delete', 'configmonitor', 'forms-logic');
});

const SERVER: Rule[] = [
  ['Name', '', 'is required'],
  ['Name', 'Photos', NAME],
  ['Image', '', 'is required'],
  ['Replicas', '-1', /greater than or equal to 0/],
  ['Replicas', 'two', 'must be of type integer'],
  ['Node port', 'x', 'must be of type integer'],
  ['Node port', '29999', 'a node port lies between 30000 and 32767; 0 leaves the choice to Kubernetes'],
];

test('a WebServer: each rule is said at its field, and nothing is made', async ({ console: page }) => {
  const sent = stored(page);
  await page.goto('/console/kinds/my.domain/v1/webservers/new');
  const right = { Name: 'forms-server', Image: 'registry.example.com/site:1.0', Replicas: '', 'Node port': '' };
  for (const [field, text] of Object.entries(right)) await type(page, field, text);
  await breaks(page, SERVER, right);
  await type(page, 'Image', '');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByText('One thing needs another look.')).toBeVisible();
  await expect(input(page, 'Image')).toBeFocused();
  expect(sent).toEqual([]);
  expect(kubectl('get', 'webservers', '-A', '-o', 'name')).not.toContain('forms-server');
});

test('a ConfigMonitor: what is wrong with a group, a list or a map is said there, and nothing is made', async ({ console: page }) => {
  const sent = stored(page);
  await page.goto('/console/kinds/magalix.com/v1/configmonitors/new');
  await type(page, 'Name', 'forms-monitor');
  await type(page, 'Configmap', 'settings');
  await breaks(page, [['Configmap', ...tooLong(253)]], { Configmap: 'settings' });

  // Which Pods it is about is a group; what is missing of it is said where it can be given.
  await page.getByRole('button', { name: 'Save' }).click();
  const selector = page.getByRole('group', { name: 'Pod selector', exact: true });
  await expect(selector).toHaveAccessibleDescription(/is required/);
  await expect(selector).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByRole('alert')).toHaveCount(0);
  await expect(selector.getByRole('button', { name: 'Add' }).first()).toBeFocused();

  const more = page.getByRole('group', { name: 'Match expressions', exact: true });
  await more.getByRole('button', { name: 'Add' }).click();
  await input(page, 'Key').blur();
  await says(input(page, 'Key'), 'is required');
  await says(input(page, 'Operator'), 'is required');
  await type(page, 'Key', 'app');
  await input(page, 'Operator').selectOption('In');
  await input(page, 'Operator').blur();
  await expect(selector).not.toHaveAttribute('aria-invalid', 'true');
  const one = page.getByRole('group', { name: 'Match expressions 1' });
  await expect(one).toHaveAccessibleDescription('In and NotIn need values, Exists and DoesNotExist take none');
  await expect(one.locator('.field-error')).toHaveText('In and NotIn need values, Exists and DoesNotExist take none');
  await input(page, 'Operator').selectOption('Exists');
  await input(page, 'Operator').blur();
  await expect(page.locator('.field-error')).toHaveCount(0);
  expect(sent).toEqual([]);
  expect(kubectl('get', 'configmonitors', '-A', '-o', 'name')).not.toContain('forms-monitor');
});

type Thing = Record<string, unknown>;

const folder = { type: 'WebFolder', baseUrl: 'https://example.com/images' };
const bucket = { type: 'S3', bucket: 'b', region: 'r', accessKey: 'a', secretKey: 's' };
const document = (more: Thing = {}): Thing => ({ name: 'around', namespace: 'default', source: folder, subDomains: ['around'], ...more });
const { secretKey: _, ...keyless } = bucket;

/** What goes around the form: a document, the field that is named, and the words. */
const AROUND: (readonly [what: string, document: Thing, field: string, says: string | RegExp])[] = [
  // The schema says this of the whole object, and the API server calls that so.
  ['a name that no Service can have', document({ name: '1st' }), '', 'must be at most 63 lower-case letters'],
  ['a name that is too long', document({ name: long(64) }), '', 'must be at most 63 lower-case letters'],
  ['no address', document({ source: { type: 'WebFolder' } }), 'spec.source.baseUrl', "baseUrl can't be empty"],
  ['an address of another protocol', document({ source: { type: 'WebFolder', baseUrl: 'ftp://x' } }), 'spec.source.baseUrl', 'must be an address that begins with http:// or https://'],
  ['an address without a host', document({ source: { type: 'WebFolder', baseUrl: 'https:///x' } }), 'spec.source.baseUrl', 'must be an address that begins with http:// or https://'],
  ['a type that there is not', document({ source: { type: 'Ftp' } }), 'spec.source.type', 'type can only be [WebFolder,S3]'],
  ['no keys and no region', document({ source: { type: 'S3', bucket: 'b' } }), 'spec.source.accessKey', 'required fields missing: accessKey, secretKey, region'],
  ['one key of two', document({ source: keyless }), 'spec.source.secretKey', 'required fields missing: secretKey'],
  ['no bucket', document({ source: { ...bucket, bucket: '' } }), 'spec.source.bucket', 'is required for a source of type S3'],
  ['a prefix that does not begin a path', document({ source: { ...bucket, pathPrefix: 'x' } }), 'spec.source.pathPrefix', "must begin with '/'"],
  ['keys beside a Secret', document({ source: { ...bucket, credentialsSecretRef: { name: 'keys' } } }), 'spec.source.credentialsSecretRef', 'stands instead of accessKey and secretKey'],
  ['no domain', document({ subDomains: [] }), 'spec.subDomains', /must name at least one|at least 1 item/],
  ['a domain with a dot', document({ subDomains: ['a.b'] }), 'spec.subDomains[0]', 'must be one DNS label'],
  ['a domain twice', document({ subDomains: ['a', 'a'] }), 'spec.subDomains[1]', /is named twice|Duplicate value/],
  ['a version that is no tag', document({ version: '-1' }), 'spec.version', 'must be a version such as 0.4.0'],
];

test('who goes around the form is refused at the same fields, by documents and by objects, and nothing is made', async ({ console: page }) => {
  const headers = await bearer(page);
  await untilServed(page);
  const post = async (path: string, data: Thing) => {
    const answer = await page.request.post(ORIGIN + path, { headers: { ...headers, 'content-type': 'application/json' }, data: JSON.stringify(data) });
    return { status: answer.status(), causes: ((await answer.json()) as { causes?: { field: string; message: string }[] }).causes ?? [] };
  };
  for (const [what, document, field, words] of AROUND) {
    const { status, causes } = await post('/darkrooms', document);
    expect(status, what).toBe(422);
    expect(causes.map(({ field }) => field), what).toContain(field);
    expect(causes.find((cause) => cause.field === field)?.message, what).toMatch(typeof words === 'string' ? new RegExp(words.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')) : words);
  }
  // What the schema says it says here too; the rest is the guest's, which objects meet when they are reconciled.
  const objects = '/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces/default';
  const object = (spec: Thing, name = 'around'): Thing => ({ ...darkroom(name), spec: { source: folder, subDomains: ['around'], ...spec } });
  const REFUSED: (readonly [object: Thing, field: string])[] = [
    [object({ source: { type: 'Ftp' } }), 'spec.source.type'],
    [object({ source: undefined }), 'spec.source'],
    [object({ source: { ...folder, baseUrl: long(2049) } }), 'spec.source.baseUrl'],
    [object({ subDomains: undefined }), 'spec.subDomains'],
    [object({ subDomains: [] }), 'spec.subDomains'],
    [object({ subDomains: ['a.b'] }), 'spec.subDomains[0]'],
    [object({ subDomains: ['a', 'a'] }), 'spec.subDomains[1]'],
    [object({ version: '-1' }), 'spec.version'],
    [object({ image: '' }), 'spec.image'],
    [object({ cache: { ttlSeconds: -1 } }), 'spec.cache.ttlSeconds'],
    [object({ source: { type: 'S3', credentialsSecretRef: { name: '' } } }), 'spec.source.credentialsSecretRef.name'],
  ];
  for (const [thing, field] of REFUSED) {
    const { status, causes } = await post(objects, thing);
    expect(status, field).toBe(422);
    expect(causes.map(({ field }) => field), field).toContain(field);
  }
  expect(kubectl('get', 'darkrooms', '-A', '-o', 'name')).not.toContain('around');
});

test('what somebody stored past the form is said on its page, and mended in the form', async ({ console: page }) => {
  apply({ ...darkroom('stored-wrong'), spec: { source: { type: 'WebFolder', baseUrl: 'ftp://example.com' }, subDomains: ['stored-wrong'] } });
  await until('its logic refuses it', () => reasonOf('darkroom/stored-wrong'), (reason) => reason !== '');
  await page.goto(`${DARKROOMS}/default/stored-wrong`);
  await expect(page.getByText(ADDRESS).first()).toBeVisible();
  await page.getByRole('link', { name: 'Edit' }).click();
  await type(page, 'Base URL', 'https://example.com/mended');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'stored-wrong', exact: true })).toBeVisible();
  await until('it is mended', () => kubectl('get', 'darkroom', 'stored-wrong', '-o', 'jsonpath={.status.conditions[?(@.type=="Stalled")].status}'), (isStalled) => isStalled !== 'True');
  kubectl('delete', 'darkroom', 'stored-wrong');
});
