// The types of the console's API, made of its route table. Do not edit: PINTLE_WRITE_DOCS=1 cargo test --workspace --lib openapi

/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** All changes up to a version were told. */
export interface Bookmark {
  /** The version. */
  resourceVersion: string;
  /** Which watch of the stream it is of, from 0. */
  watch: number;
}

/** The stream ends. */
export interface Bye {
  /** Why. */
  reason: StreamEnd;
}

/** One field that is at fault. */
export interface Cause {
  /** Its path, as Kubernetes writes it: `spec.source.baseUrl`. Empty where the whole object is meant. */
  field: string;
  /** What is wrong with it. */
  message: string;
  /** One word for it. */
  reason: string;
}

/** What would become of an object, in one word. */
export type Change = "create" | "update" | "delete" | "unchanged" | "unknown" | "adopt" | "conflict";

/** One question. */
export interface Check {
  /** The group; empty for the core group. */
  group?: string;
  /** The object; all of them without one. */
  name?: string | null;
  /** The namespace; all of them without one. */
  namespace?: string | null;
  /** The plural. */
  resource: string;
  /** The subresource. */
  subresource?: string | null;
  /** The verb. */
  verb: string;
}

/** The answers. */
export interface Checked {
  /** In the order of the questions. */
  allowed: boolean[];
}

/** What a caller wants to know whether it may do. */
export interface Checks {
  /** At most 64. */
  checks: Check[];
}

/** An object that exists because of a root. */
export interface Child {
  /** Group and version. */
  apiVersion: string;
  /** When it was created (RFC 3339). */
  created: string;
  /** Whether it is being deleted. */
  deleting: boolean;
  /** The kind. */
  kind: string;
  /** Its name. */
  name: string;
  /** Its namespace, if it is in one. */
  namespace: string | null;
  /** Whether it is ready, by the rule of its kind. */
  ready: ChildReady;
  /** Whether it is a Secret, of which only the metadata were read. */
  secret: boolean;
  /** Its uid. */
  uid: string;
}

/** What would become of an object. */
export interface ChildChange {
  /** In one word. */
  change: Change;
  /** The same as a unified diff of YAML, with a word in the place of what nobody is to read. */
  diff: string;
  /** The fields that differ. */
  fields: FieldChange[];
  /** How many Pods there are of a workload that would be deleted or whose Pod template would change. */
  pods?: number;
  /** The object. */
  reference: ObjectRef;
  /** Why, where the word does not say it. */
  why?: string | null;
}

/** Whether a child is ready. */
export interface ChildReady {
  /** Why, for a person. */
  message: string;
  /** Why, in one word. */
  reason: string;
  /** Whether it is. */
  status: ConditionStatus;
}

/** The children of a root. */
export interface Children {
  /** Sorted by kind and name. */
  items: Child[];
  /** The kinds that could not be read. */
  unread: UnreadKind[];
  /** The kinds that were listed: a stream that watches these tells of every change. */
  watched: WatchedKind[];
}

/** Something that happened to an object. */
export interface ClusterEvent {
  /** How often. */
  count: number;
  /** When first (RFC 3339). */
  first: string;
  /** When last (RFC 3339). */
  last: string;
  /** Its namespace. */
  namespace: string | null;
  /** What happened, for a person. */
  note: string;
  /** What happened, in one word. */
  reason: string;
  /** What it happened to. */
  regarding: Regarding;
  /** Who says so. */
  reporter: string;
  /** `Normal` or `Warning`. */
  type: string;
  /** Its uid. */
  uid: string;
}

/** A condition, as every Kubernetes tool reads it. */
export interface Condition {
  /** When the status last changed (RFC 3339, UTC). */
  lastTransitionTime: string;
  /** Why, for a person. */
  message: string;
  /** The generation of the object that the condition describes. */
  observedGeneration?: number | null;
  /** Why, in one CamelCase word. */
  reason: string;
  /** True, False or Unknown. */
  status: ConditionStatus;
  /** What the condition is about, in CamelCase. */
  type: string;
}

/** The status of a condition. */
export type ConditionStatus = "True" | "False" | "Unknown";

/** A kind and its schema. */
export interface Described {
  /** Its printer columns. */
  columns: PrinterColumn[];
  /** The group; empty for the core group. */
  group: string;
  /** The kind. */
  kind: string;
  /** Whether its objects live in namespaces. */
  namespaced: boolean;
  /** The plural. */
  plural: string;
  /** Its schema, in the words of OpenAPI 3.0, with Kubernetes' own beside them. */
  schema: Record<string, Json>;
  /** The version. */
  version: string;
}

/** Events, newest first. */
export interface Events {
  /** Newest first. */
  items: ClusterEvent[];
}

/** A module that was looked at, and what became of it. */
export interface Examined {
  /** How long compiling took. */
  compileMilliseconds: number;
  /** The interfaces of the contract that it exports. */
  contract: string[];
  /** Whether there is a new Module; with dryRun, whether there would be. */
  created: boolean;
  /** The digest of its bytes. */
  digest: string;
  /** What its guest declares, if it reconciles. */
  manifest: Json;
  /** The name of the Module. */
  name: string;
  /** How many there are. */
  sizeBytes: number;
  /** Whether the Module was there already, with the same bytes. */
  unchanged: boolean;
  /** Who uses it: Reconcilers, and Views with `view/` before their name. */
  usedBy: string[];
  /** What it declares of its views, if it serves any. */
  views: Json;
  /** What is odd about it, although nothing is wrong. */
  warnings: string[];
}

/** One of several objects. */
export interface Example {
  /** Its name. */
  name: string;
  /** Its namespace. */
  namespace: string | null;
}

/** Why something would fail. */
export interface Failure {
  /** For a person. */
  message: string;
  /** The field at fault. */
  path: string | null;
  /** One word in CamelCase. */
  reason: string;
}

/** A field that differs. */
export interface FieldChange {
  /** Its value now; absent where there is none. */
  from?: Json;
  /** The field: `spec.template.spec.containers[name=web].image`. */
  path: string;
  /** Its value then; absent where it goes. */
  to?: Json;
}

/** The host. */
export interface Host {
  /** Who leads, if somebody does. */
  leader: Leader | null;
  /** Why that is not known. */
  unread: Unread | null;
  /** The version of this server. */
  version: string;
}

/** A root's request and answer. */
export interface Inspected {
  /** The answer after the gate, without what the host adds to children. */
  answer: Json;
  /** When. */
  asOf: string;
  /** The children, wanted and live. */
  children: InspectedChild[];
  /** Why there is none. */
  failure: Failure | null;
  /** The module that was asked. */
  module: JudgedModule;
  /** Why nothing would be done, whatever the guest says. */
  note: string | null;
  /** The root's condition Ready. */
  ready: Condition | null;
  /** The Reconciler. */
  reconciler: string;
  /** The request of the last call; none where the guest is not asked. */
  request: Json;
  /** Whether a word stands in the place of what nobody is to read: values of Secrets, and what a view or a CRD marks. */
  secretsReplaced: boolean;
  /** What could not be known. */
  unknown: Unknown[];
}

/** A child, wanted and live. */
export interface InspectedChild {
  /** In one word. */
  change: Change;
  /** The same as a unified diff of YAML, with a word in the place of what nobody is to read. */
  diff: string;
  /** The fields that differ. */
  fields: FieldChange[];
  /** As it is, without managed fields. */
  live: Json;
  /** How many Pods there are of a workload that would be deleted or whose Pod template would change. */
  pods?: number;
  /** The object. */
  reference: ObjectRef;
  /** As the answer has it. */
  wanted: Json;
  /** Why, where the word does not say it. */
  why?: string | null;
}

/** The module that a root was put before. */
export interface JudgedModule {
  /** Its digest. */
  digest: string;
  /** Whether it is the one in force. */
  inForce: boolean;
  /** Its name, or that of its file. */
  name: string;
}

/** A kind of root. */
export interface Kind {
  /** The group. */
  group: string;
  /** The kind. */
  kind: string;
  /** Whether the caller may list its objects: in the namespace that was asked about, or else in all of them. */
  mayList: boolean;
  /** Whether its objects live in namespaces. */
  namespaced: boolean;
  /** Its name in paths. */
  plural: string;
  /** The Reconcilers that are for it. */
  reconcilers: string[];
  /** Its short names. */
  shortNames: string[];
  /** The version. */
  version: string;
}

/** A kind, and what the host must be allowed to do with its objects. */
export interface KindRights {
  /** Group and version. */
  apiVersion: string;
  /** Whether the Reconciler grants it. If not, answers with it would be refused. */
  granted: boolean;
  /** The kind. */
  kind: string;
  /** Those that the host may not use, as the API server says; null where that is not known. */
  missing: string[] | null;
  /** The verbs of Kubernetes' RBAC. */
  verbs: string[];
}

/** The kinds of roots. */
export interface Kinds {
  /** Sorted by group and kind. */
  items: Kind[];
  /** Why Reconcilers were not read, if they were not. */
  unread: Unread | null;
}

/** The host that works, as the Lease names it. */
export interface Leader {
  /** Its name. */
  holder: string;
  /** When it last said so (RFC 3339). */
  renewed: string;
  /** Since when it leads (RFC 3339). */
  since: string;
}

/** What a plan left out. */
export interface Limits {
  /** Whether there were more kinds and paths than are listed, or more roots than the console sends. */
  truncated: boolean;
}

/** How callers show who they are, in one word. */
export type ModeName = "local" | "token";

/** A module, by name and digest. */
export interface ModuleName {
  /** Its digest. */
  digest: string;
  /** Its name, or that of its file. */
  name: string;
}

/** The names of namespaces. */
export interface Namespaces {
  /** Sorted. */
  items: string[];
}

/** A change of an object: as a row, or whole where the watch asks for that. */
export interface ObjectChange {
  object?: Record<string, Json>;
  /** The version of the object. */
  resourceVersion: string;
  row?: Row | ClusterEvent;
  /** Which watch of the stream it is of, from 0. */
  watch: number;
}

/** Names one object. */
export interface ObjectRef {
  /** Group and version of the object's kind. */
  apiVersion: string;
  /** The object's kind. */
  kind: string;
  /** The object's name. */
  name: string;
  /** The object's namespace; absent for a cluster-scoped object. */
  namespace?: string | null;
}

/** A page of a list. */
export interface Page {
  /** What asks for the next page; nothing on the last. */
  continue: string | null;
  /** The objects. */
  items: Row[];
  /** How many more there are, if the API server says so. */
  remaining: number | null;
  /** The version of the list, for a watch that goes on from it. */
  resourceVersion: string;
}

/** What to plan. */
export interface PlanRequest {
  /** The config that it is called with; the Reconciler's without it. */
  config?: Json;
  /** Only roots with these labels. */
  labelSelector?: string | null;
  /** The Module to judge; the one in force without it. */
  module?: string | null;
  /** Only roots in this namespace. */
  namespace?: string | null;
  /** Only this root: NAME, or NAMESPACE/NAME. */
  root?: string | null;
  /** Whether the API server is asked what it would say to each apply. */
  server?: boolean;
}

/** What would become of a root. */
export interface PlannedRoot {
  /** The children of the answer, and those that it no longer has. */
  children: ChildChange[];
  /** The Pods that would be evicted. */
  evictions: ObjectRef[];
  /** Whether the root fails now, for whatever reason. Absent where nothing says so. */
  failsNow: boolean | null;
  /** Why there would be no answer, or why it could not be carried out. */
  failure: Failure | null;
  /** Whether the guest has given an answer that may be carried out, and only what it would change may not be known. */
  hasAnswer: boolean;
  /** Why nothing would be done, whatever the guest says. */
  note: string | null;
  /** The objects that the answer patches. */
  patches: ChildChange[];
  /** The root. */
  root: RootRef;
  /** What stands against the root's children now. A swap forgets it, and the API server may say it again. */
  standingRefusals: Standing[];
  /** The guest's status fields and conditions that would change, and the root's finalizers. */
  status: StatusChanges | null;
  /** What could not be known. */
  unknown: Unknown[];
  /** In one word. */
  verdict: Verdict;
}

/** A column of the lists of a kind, as kubectl prints it. */
export interface PrinterColumn {
  /** Its title. */
  name: string;
  /** The path of its values, as the fields of a list are named. */
  path: string;
  /** Lists have those of 0. */
  priority: number;
  /** What its values are: `string`, `integer`, `number`, `boolean` or `date`. */
  type: string;
}

/** A problem as it is written. */
export interface Problem {
  /** The fields that are at fault. */
  causes: Cause[];
  /** What happened, for a person. */
  detail: string;
  /** The same as `detail`. */
  details: string;
  /** How callers show who they are; only with status 401. */
  mode?: ModeName;
  /** One CamelCase word for programs. */
  reason?: string;
  /** The status code. */
  status: number;
  /** The name of the status code. */
  title: string;
  /** Always `about:blank`: the status code says which kind of problem it is. */
  type: string;
}

/** How far a plan is. */
export interface Progress {
  /** How many roots were looked at. */
  done: number;
  /** How many there are. */
  total: number;
}

/** The condition Ready of an object. */
export interface Ready {
  /** Whether it is about the present generation. */
  current: boolean;
  /** Why, for a person. */
  message: string;
  /** Why, in one word. */
  reason: string;
  /** Since when (RFC 3339). */
  since: string | null;
  /** Nothing where there is no such condition. */
  status: ConditionStatus | null;
}

/** What an Event is about. */
export interface Regarding {
  /** Group and version. */
  apiVersion: string;
  /** The kind. */
  kind: string;
  /** Its name. */
  name: string;
  /** Its namespace, if it is in one. */
  namespace: string | null;
}

/** A watch ended, and its list must be read anew. */
export interface Reset {
  /** Which watch of the stream it is, from 0. */
  watch: number;
}

/** A root, by its names. */
export interface RootRef {
  /** Group and version of its kind. */
  apiVersion: string;
  /** Its kind. */
  kind: string;
  /** Its name. */
  name: string;
  /** Its namespace. */
  namespace: string | null;
  /** Its uid. */
  uid: string;
}

/** How many roots there are. Each is one of `unchanged`, `changed`, `fails` and `unknown`. */
export interface Roots {
  /** Those that would change. */
  changed: number;
  /** Those that would fail, also where a part of their answer can be carried out. */
  fails: number;
  /** Those among them that do not fail now. */
  newlyFailing: number;
  /** All that were looked at. */
  total: number;
  /** Those that stay as they are. */
  unchanged: number;
  /** Those of which it cannot be told. */
  unknown: number;
}

/** An object, as a list shows it. */
export interface Row {
  /** When it was created (RFC 3339). */
  created: string;
  /** Those of them that are too large to be here. */
  cut?: string[];
  /** Whether it is being deleted. */
  deleting: boolean;
  /** The fields that were asked for, by their paths. */
  fields: Record<string, Json>;
  /** The generation of its spec. */
  generation: number | null;
  /** Its labels. */
  labels: Record<string, string>;
  /** Its name. */
  name: string;
  /** Its namespace, if it is in one. */
  namespace: string | null;
  /** Its condition Ready. */
  ready: Ready;
  /** Whether it is worked on. */
  reconciling: boolean;
  /** Its version. */
  resourceVersion: string;
  /** Whether it does not become ready by itself. */
  stalled: boolean;
  /** Whether it is suspended. */
  suspended: boolean;
  /** Its uid. */
  uid: string;
}

/** Who the caller is, and where it is. */
export interface Session {
  /** The cluster. */
  cluster: string;
  /** The context of the kubeconfig. */
  context: string | null;
  /** When the token ends, if it says so. */
  expires: string | null;
  /** How callers show who they are. */
  mode: ModeName;
  /** The namespace that the context names: where to begin, and perhaps the only one in which the caller may do anything. */
  namespace: string | null;
  /** Who the API server takes the caller for. */
  user: User;
  /** The version of this server. */
  version: string;
}

/** What the root's Ready says of a refusal. */
export interface Standing {
  /** The message. */
  message: string;
  /** The reason. */
  reason: string;
}

/** What would change in a root. */
export interface StatusChanges {
  /** The fields. */
  changes: FieldChange[];
}

/** Why a stream ends. */
export type StreamEnd = "expired" | "renew" | "stopping" | "unauthorized";

/** What a plan comes to. */
export interface Summary {
  /** What would change, by kind and path, the most frequent first. */
  changes: SummaryLine[];
  /** How many objects would be deleted. */
  deletionCount: number;
  /** The objects that would be deleted, 1000 at most. Pods that would be evicted are not among them. */
  deletions: ObjectRef[];
  /** The module in force. */
  inForce: ModuleName | null;
  /** What was cut. */
  limits: Limits;
  /** The module that was asked. */
  module: ModuleName;
  /** The kinds that the module uses and the one in force does not, with what the host must be allowed to do with them. */
  newKinds: KindRights[];
  /** How many of the roots that would fail would be changed all the same, or may be, by what of their answer can be carried out. */
  partial: number;
  /** The Reconciler. */
  reconciler: string;
  /** How many Pods would be replaced, because the Pod template of their workload would change, or because they would be evicted. */
  restarts: number;
  /** The command that lets the host do that; none where it may already. */
  roleCommand: string | null;
  /** How many roots there are. */
  roots: Roots;
  /** How long it took. */
  seconds: number;
  /** How many Pods would end, because their workload would be deleted. */
  stops: number;
}

/** What would change in several roots. */
export interface SummaryLine {
  /** What becomes of it. */
  change: Change;
  /** In how many objects. */
  count: number;
  /** One of them. */
  example: Example;
  /** The kind of the objects. */
  kind: string;
  /** The field; empty where whole objects come or go. */
  path: string;
}

/** Something that could not be known. */
export interface Unknown {
  /** What. */
  what: string;
  /** Why not. */
  why: string;
}

/** Why something is not here. */
export interface Unread {
  /** For a person. */
  why: string;
}

/** A kind that could not be read. */
export interface UnreadKind {
  /** Group and version. */
  apiVersion: string;
  /** The kind. */
  kind: string;
  /** Why, for a person. */
  why: string;
}

/** A user, as the API server knows it. */
export interface User {
  /** Its groups. */
  groups: string[];
  /** Its name. */
  name: string;
}

/** What would become of a root, in one word. */
export type Verdict = "unchanged" | "changed" | "fails" | "unknown";

/** A watch does not go on. Where a retry can help it is tried again, and its next event says that it goes on. */
export interface WatchProblem {
  /** Why. */
  problem: Problem;
  /** Which watch of the stream it is, from 0. */
  watch: number;
}

/** A kind whose objects with the root's label are its children. */
export interface WatchedKind {
  /** The group; empty for the core group. */
  group: string;
  /** Where they are; everywhere without one. */
  namespace: string | null;
  /** The plural. */
  plural: string;
  /** The version of the list, for a watch that goes on from it. */
  resourceVersion: string;
  /** The version. */
  version: string;
}

/** What each operation takes and answers: `never` where there is none. */
export interface Operations {
  /** What the caller may do. */
  can: {
    path: never;
    query: never;
    body: Checks;
    answer: Checked;
  };
  /** Which version serves this, and which host leads. */
  getHost: {
    path: never;
    query: never;
    body: never;
    answer: Host;
  };
  /** The kinds of roots. */
  listKinds: {
    path: never;
    query: {
      /** Whether the caller may list them in this namespace */
      namespace?: string;
    };
    body: never;
    answer: Kinds;
  };
  /** Upload a module. It is verified by the engine before anything is created. */
  uploadModule: {
    path: {
      name: string;
    };
    query: {
      /** All: verify, ask whether it could be created, and create nothing */
      dryRun?: "All";
    };
    body: ArrayBuffer | Blob;
    answer: Examined;
  };
  /** The namespaces, for who may list them. */
  listNamespaces: {
    path: never;
    query: never;
    body: never;
    answer: Namespaces;
  };
  /** Objects of a kind, as rows. */
  listObjects: {
    path: {
      group: string;
      plural: string;
      version: string;
    };
    query: {
      /** What the page before gave */
      continue?: string;
      /** Those with these fields */
      fieldSelector?: string;
      /** Paths of fields that rows are to have, with commas between them */
      fields?: string;
      /** Those with these labels */
      labelSelector?: string;
      /** How many rows a page has at most; 500 unless it is said */
      limit?: number;
      /** Those of this namespace */
      namespace?: string;
      /** Those with this in their name. A page may then be shorter than its limit */
      search?: string;
    };
    body: never;
    answer: Page;
  };
  /** Create an object. */
  createClusterObject: {
    path: {
      group: string;
      plural: string;
      version: string;
    };
    query: {
      /** All: check, and change nothing */
      dryRun?: "All";
    };
    body: Record<string, Json>;
    answer: Record<string, Json>;
  };
  /** Delete an object. */
  deleteClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: {
      /** All: check, and change nothing */
      dryRun?: "All";
      /** What becomes of the objects that it owns */
      propagationPolicy?: "Background" | "Foreground" | "Orphan";
      /** Only if it is still this one */
      uid?: string;
    };
    body: never;
    answer: Record<string, Json>;
  };
  /** An object, whole. */
  getClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: never;
    body: never;
    answer: Record<string, Json>;
  };
  /** Merge a patch into an object. */
  patchClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: {
      /** All: check, and change nothing */
      dryRun?: "All";
    };
    body: Record<string, Json>;
    answer: Record<string, Json>;
  };
  /** What a root is made of. */
  listChildrenOfClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: never;
    body: never;
    answer: Children;
  };
  /** Events about an object, newest first. */
  listEventsOfClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: never;
    body: never;
    answer: Events;
  };
  /** What the guest of a root is asked and answers now, and what that would change. */
  inspectClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: {
      /** The Module that is asked; the one in force without it */
      module?: string;
    };
    body: never;
    answer: Inspected;
  };
  /** What the guest would answer if the root were as it is here: the answer of the API server to a dry run, for instance. Nothing is written. */
  judgeClusterObject: {
    path: {
      group: string;
      name: string;
      plural: string;
      version: string;
    };
    query: {
      /** The Module that is asked; the one in force without it */
      module?: string;
    };
    body: Record<string, Json>;
    answer: Inspected;
  };
  /** Create an object. */
  createObject: {
    path: {
      group: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: {
      /** All: check, and change nothing */
      dryRun?: "All";
    };
    body: Record<string, Json>;
    answer: Record<string, Json>;
  };
  /** Delete an object. */
  deleteObject: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: {
      /** All: check, and change nothing */
      dryRun?: "All";
      /** What becomes of the objects that it owns */
      propagationPolicy?: "Background" | "Foreground" | "Orphan";
      /** Only if it is still this one */
      uid?: string;
    };
    body: never;
    answer: Record<string, Json>;
  };
  /** An object, whole. */
  getObject: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: never;
    body: never;
    answer: Record<string, Json>;
  };
  /** Merge a patch into an object. */
  patchObject: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: {
      /** All: check, and change nothing */
      dryRun?: "All";
    };
    body: Record<string, Json>;
    answer: Record<string, Json>;
  };
  /** What a root is made of. */
  listChildren: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: never;
    body: never;
    answer: Children;
  };
  /** Events about an object, newest first. */
  listEventsOf: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: never;
    body: never;
    answer: Events;
  };
  /** What the guest of a root is asked and answers now, and what that would change. */
  inspect: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: {
      /** The Module that is asked; the one in force without it */
      module?: string;
    };
    body: never;
    answer: Inspected;
  };
  /** What the guest would answer if the root were as it is here: the answer of the API server to a dry run, for instance. Nothing is written. */
  judge: {
    path: {
      group: string;
      name: string;
      namespace: string;
      plural: string;
      version: string;
    };
    query: {
      /** The Module that is asked; the one in force without it */
      module?: string;
    };
    body: Record<string, Json>;
    answer: Inspected;
  };
  /** What a module would change on every root, and nothing is written: events progress, root, summary and problem. */
  plan: {
    path: {
      name: string;
    };
    query: never;
    body: PlanRequest;
    answer: never;
    events: {
      problem: Problem;
      progress: Progress;
      root: PlannedRoot;
      summary: Summary;
    };
  };
  /** The schema and the printer columns of a kind. */
  getSchema: {
    path: {
      group: string;
      plural: string;
      version: string;
    };
    query: {
      /** One whose objects the caller may list, if not all */
      namespace?: string;
    };
    body: never;
    answer: Described;
  };
  /** Who the caller is. */
  getSession: {
    path: never;
    query: never;
    body: never;
    answer: Session;
  };
  /** Changes of objects as they happen: events added, modified, deleted, bookmark, reset, problem and bye. */
  stream: {
    path: never;
    query: {
      /** GROUP/VERSION/PLURAL, and then as wanted ;namespace=N ;name=N ;root=UID ;resourceVersion=V ;fields=a.b,c ;whole=true */
      watch?: string[];
    };
    body: never;
    answer: never;
    events: {
      added: ObjectChange;
      bookmark: Bookmark;
      bye: Bye;
      deleted: ObjectChange;
      modified: ObjectChange;
      problem: WatchProblem;
      reset: Reset;
    };
  };
  /** Whether the server runs. */
  getHealth: {
    path: never;
    query: never;
    body: never;
    answer: string;
  };
  /** This description; with the documents of views, for those who show who they are. */
  getDescription: {
    path: never;
    query: never;
    body: never;
    answer: Record<string, Json>;
  };
  /** Whether the server takes requests. */
  getReadiness: {
    path: never;
    query: never;
    body: never;
    answer: string;
  };
}

/** Where the operations are. A body is JSON unless another form is named. */
export const operations = {
  can: { method: "POST", path: "/api/v1/can" },
  getHost: { method: "GET", path: "/api/v1/host" },
  listKinds: { method: "GET", path: "/api/v1/kinds" },
  uploadModule: { method: "PUT", path: "/api/v1/modules/{name}", form: "application/wasm" },
  listNamespaces: { method: "GET", path: "/api/v1/namespaces" },
  listObjects: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}" },
  createClusterObject: { method: "POST", path: "/api/v1/objects/{group}/{version}/{plural}/cluster" },
  deleteClusterObject: { method: "DELETE", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}" },
  getClusterObject: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}" },
  patchClusterObject: { method: "PATCH", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}", form: "application/merge-patch+json" },
  listChildrenOfClusterObject: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}/children" },
  listEventsOfClusterObject: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}/events" },
  inspectClusterObject: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}/inspect" },
  judgeClusterObject: { method: "POST", path: "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}/inspect" },
  createObject: { method: "POST", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}" },
  deleteObject: { method: "DELETE", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}" },
  getObject: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}" },
  patchObject: { method: "PATCH", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}", form: "application/merge-patch+json" },
  listChildren: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}/children" },
  listEventsOf: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}/events" },
  inspect: { method: "GET", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}/inspect" },
  judge: { method: "POST", path: "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}/inspect" },
  plan: { method: "POST", path: "/api/v1/reconcilers/{name}/plan" },
  getSchema: { method: "GET", path: "/api/v1/schema/{group}/{version}/{plural}" },
  getSession: { method: "GET", path: "/api/v1/session" },
  stream: { method: "GET", path: "/api/v1/stream" },
  getHealth: { method: "GET", path: "/healthz" },
  getDescription: { method: "GET", path: "/openapi.json" },
  getReadiness: { method: "GET", path: "/readyz" },
} as const;
