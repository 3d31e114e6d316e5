// The layouts of the kinds that come with Pintle.
import type { KindPath } from '../api/objects';
import { type Layout, plainLayout, type Thing } from './layout';
import { isObject } from './path';

const specOf = (thing: Thing): Thing => (isObject(thing.spec) ? thing.spec : {});
const sourceOf = (thing: Thing): Thing => {
  const { source } = specOf(thing);
  return isObject(source) ? source : {};
};

/** The fields of a source that only one type has. */
const WEB_FOLDER = ['baseUrl'];
const KEYS = ['accessKey', 'secretKey'];
const S3 = ['bucket', 'region', 'pathPrefix', 'endpoint', 'credentialsSecretRef', ...KEYS];

/** Versions of the image proxy that are known to start. */
const VERSIONS = ['0.4.0', '0.3.1', '0.3.0', '0.2.0', '0.1.0', 'latest'];

function leavesOut(field: string, type: unknown, way: string | undefined): boolean {
  if (WEB_FOLDER.includes(field)) return type !== 'WebFolder';
  if (!S3.includes(field) && field !== '@credentials') return false;
  return type !== 'S3' || (field === 'credentialsSecretRef' && way === 'keys') || (KEYS.includes(field) && way === 'secret');
}

export const darkroom: Layout = {
  ...plainLayout('Darkroom'),
  one: 'Source',
  many: 'Sources',
  icon: 'folder',
  nameLabel: 'Source Name',
  start: { spec: { source: { type: 'WebFolder' } } },
  groups: [
    { title: 'Source', fields: ['spec.source.type', 'spec.source.baseUrl', 'spec.source.bucket', 'spec.source.region', 'spec.source.pathPrefix', 'spec.source.endpoint'] },
    { title: 'Credentials', fields: ['@credentials', 'spec.source.accessKey', 'spec.source.secretKey', 'spec.source.credentialsSecretRef.name'] },
    { title: 'Domains', fields: ['spec.subDomains'] },
    { title: 'Image proxy', fields: ['spec.version', 'spec.cache.ttlSeconds'] },
  ],
  retired: ['spec.image'],
  looks: {
    'spec.source.type': { label: 'Source Type', help: '', options: [{ value: 'WebFolder', label: 'Web Folder', icon: 'folder' }, { value: 'S3', label: 'Amazon S3', icon: 'bucket' }] },
    'spec.source.baseUrl': { label: 'Base URL', required: true, placeholder: 'https://example.com/images', help: 'The address below which the images lie, with http or https.' },
    'spec.source.bucket': { half: true, label: 'S3 Bucket', required: true, help: "The bucket's name." },
    'spec.source.region': { half: true, label: 'Region', required: true, placeholder: 'eu-central-1', help: "The bucket's region.", known: ['eu-central-1', 'eu-west-1', 'eu-north-1', 'us-east-1', 'us-east-2', 'us-west-2', 'ap-south-1', 'ap-southeast-1', 'ap-northeast-1', 'sa-east-1'].map((value) => ({ value, label: value })) },
    'spec.source.pathPrefix': { half: true, label: 'Path Prefix', placeholder: '/', help: 'Only paths that begin with this are served.' },
    'spec.source.endpoint': { half: true, label: 'Endpoint', placeholder: 'https://s3.example.com', help: "The address of a service that is not Amazon's; from version 0.3.1 on." },
    'spec.source.accessKey': { half: true, guarded: true, label: 'Access Key ID', required: true, help: 'Everybody who can read the source can read it.' },
    'spec.source.secretKey': { half: true, label: 'Secret Access Key', required: true, secret: true, guarded: true, help: 'Everybody who can read the source can read it: better keep both keys in a Secret.' },
    'spec.source.credentialsSecretRef.name': { label: 'Secret', required: true, help: 'Its name, in the same namespace. It has the keys SOURCE_BUCKET_ACCESSKEY and SOURCE_BUCKET_SECRETKEY.' },
    'spec.subDomains': { label: 'Darkroom SubDomains', placeholder: 'photos', help: 'Each one a label below the domain that the administrator has set. Enter adds one.' },
    'spec.version': { half: true, label: 'Version', help: 'The version of the image proxy. Another than those listed is taken as an image tag.', known: VERSIONS.map((value, at) => (at === 0 ? { value, label: value, hint: 'default' } : { value, label: value })) },
    'spec.cache.ttlSeconds': { half: true, label: 'Default Cache TTL (seconds)', help: 'For how long browsers and caches may keep an image. Empty: what the administrator has set. 0: they ask again each time.' },
    'spec.image': { label: 'Image' },
  },
  choices: {
    '@credentials': {
      label: 'Where the keys are',
      options: [{ value: 'keys', label: 'Here', icon: 'edit' }, { value: 'secret', label: 'In a Secret of the cluster', icon: 'lock' }],
      of: (thing) => (sourceOf(thing).credentialsSecretRef === undefined ? 'keys' : 'secret'),
    },
  },
  when: (field, thing, choices) => {
    const name = field.startsWith('@') ? field : (/^spec\.source\.(\w+)/.exec(field)?.[1] ?? '');
    return !leavesOut(name, sourceOf(thing).type, choices['@credentials']);
  },
  clean: (thing, choices) => {
    const source = sourceOf(thing);
    if (source.type !== 'WebFolder' && source.type !== 'S3') return thing;
    const kept = Object.fromEntries(Object.entries(source).filter(([field]) => !leavesOut(field, source.type, choices['@credentials'])));
    // A Secret that has no name yet is there, so that the API server misses the name at its field.
    const unnamed = source.type === 'S3' && choices['@credentials'] === 'secret' ? { credentialsSecretRef: {} } : {};
    return { ...thing, spec: { ...specOf(thing), source: { ...unnamed, ...kept } } };
  },
};

export const configMonitor: Layout = {
  ...plainLayout('ConfigMonitor'),
  many: 'ConfigMonitors',
  icon: 'eye',
  groups: [
    { title: 'What is watched', fields: ['spec.configmap', 'spec.configMap'] },
    { title: 'Which Pods use it', fields: ['spec.podSelector.matchLabels', 'spec.podSelector.matchExpressions'] },
    { title: 'What then happens', fields: ['spec.strategy', 'spec.evictUnowned'] },
  ],
  looks: {
    'spec.configmap': { label: 'ConfigMap', required: true },
    'spec.podSelector.matchLabels': { label: 'Labels' },
    'spec.podSelector.matchExpressions': { label: 'Further requirements' },
    'spec.strategy': { label: 'Strategy', options: [{ value: 'RollingRestart', label: 'Rolling restart' }, { value: 'Evict', label: 'Evict' }, { value: 'Delete', label: 'Delete' }] },
    'spec.evictUnowned': { label: 'Take Pods without an owner too' },
  },
};

const LAYOUTS: Readonly<Record<string, Layout>> = {
  'deployments.example.com/darkrooms': darkroom,
  'magalix.com/configmonitors': configMonitor,
};

/** The layout of a kind. */
export function layoutOf({ group, plural }: Pick<KindPath, 'group' | 'plural'>, kind: string): Layout {
  const key = `${group}/${plural}`;
  return (Object.hasOwn(LAYOUTS, key) ? LAYOUTS[key] : undefined) ?? plainLayout(kind);
}
