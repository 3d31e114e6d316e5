// The shapes of Kubernetes objects and of their schemas, of which the API's description says no more than that they are JSON.
import type { Json } from '../api/generated';

/** An OpenAPI v3 schema of the API server, references inlined, as far as forms read it. */
export interface JsonSchema {
  type?: string;
  format?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  additionalProperties?: boolean | JsonSchema;
  enum?: Json[];
  default?: Json;
  minimum?: number;
  maximum?: number;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-validations'?: { rule: string }[];
}

export interface Meta {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  creationTimestamp: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  [key: string]: unknown;
}

/** A whole object. */
export interface K8sObject {
  apiVersion: string;
  kind: string;
  metadata: Meta;
  spec?: Record<string, Json>;
  status?: Record<string, Json>;
  [key: string]: unknown;
}

// What Pintle's own objects hold. Everything that a server may leave out is optional.

/** The spec and the status of a Module. */
export interface ModuleSpec {
  digest: string;
  source: { configMap?: { namespace: string; name: string; key: string; parts?: number } };
}

export interface ModuleStatus {
  size?: number;
  contract?: string;
  manifest?: Json;
  compileMilliseconds?: number;
  usedBy?: string[];
}

/** The spec and the status of a View. */
export interface ViewSpec {
  module: string;
  view: string;
  serve: { aggregated?: object; rest?: { path: string } };
  verbs?: string[];
  access?: 'ViewAndBacking' | 'View';
  config?: Json;
}

export interface ViewStatus {
  active?: { module: string; digest: string; epoch?: number; since?: string; config?: Json };
  candidate?: { module: string; reason?: string; message?: string };
  served?: { apiVersion?: string; kind?: string; plural?: string; verbs?: string[]; prefix?: string; backing?: { apiVersion: string; kind: string; plural: string }; selector?: Record<string, string>; reads?: string[]; writes?: string[] };
}

/** The spec of a Reconciler. */
export interface ReconcilerSpec {
  for: { apiVersion: string; kind: string };
  module: string;
  namespaces?: 'All' | string[];
  grants?: Grants;
  limits?: { timeoutMilliseconds?: number; memoryMebibytes?: number; responseKibibytes?: number; children?: number };
  rollout?: { strategy?: string };
  serviceAccount?: { namespace?: string; name?: string; fromRoot?: string };
  fieldManager?: string;
  config?: Json;
  suspend?: boolean;
}

export interface Grants {
  children?: { apiVersion: string; kinds: string[]; namespaces?: string[] }[];
  needs?: { apiVersion: string; kinds: string[]; scope?: string; names?: string[] }[];
  patches?: { apiVersion: string; kind: string; fields?: string[]; force?: boolean }[];
  evictions?: boolean;
  podDeletions?: boolean;
  podTemplates?: { references?: { kind: string; name?: string; fromRoot?: string }[]; allow?: string[] };
  services?: { types?: string[]; externalIps?: boolean };
  ingressAnnotations?: string[];
}

export interface ReconcilerStatus {
  active?: { module: string; digest: string; config?: Json; since?: string; roots?: { reconciled?: number; changed?: number; failing?: number; newlyFailing?: number } };
  candidate?: { module: string; reason?: string; message?: string };
  /** What was active: module and config. */
  history?: { module: string; digest?: string; config?: Json; since?: string }[];
  roots?: { total?: number; ready?: number; failing?: number };
}
