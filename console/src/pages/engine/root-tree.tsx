// The children of a root, folded by kind.
import { useState } from 'preact/hooks';
import type { Child, Children } from '../../api/generated';
import type { KindPath } from '../../api/objects';
import { useChildChanges } from '../../lib/children';
import { rootHref } from '../../lib/kinds';
import type { K8sObject } from '../../lib/kubernetes';
import { type Read, useRead } from '../../lib/read';
import { Age } from '../../ui/age';
import { Button } from '../../ui/button';
import { Empty, Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { Icon, type IconName } from '../../ui/icon';
import { statefulOf, type Tone } from '../../ui/conditions';
import { Section } from '../../ui/layout';
import { Status } from '../../ui/status';
import { beginning } from '../../ui/text';
import { type Branch, branches, type ChildState, stateOfChild } from './tree';
import { count } from './words';

const SHOWN: Record<ChildState, { tone: Tone; icon: IconName; label: string }> = {
  ready: { tone: 'ok', icon: 'check-circle', label: 'Ready' },
  waiting: { tone: 'warn', icon: 'clock', label: 'Not ready' },
  deleting: { tone: 'muted', icon: 'trash', label: 'Deleting' },
};

/** More children of a kind than this are folded until somebody asks. */
const FOLDED = 6;
const MOST = 200;

function Leaf({ child, blocks, root }: { child: Child; blocks: boolean; root: string | null }) {
  const { tone, icon, label } = SHOWN[stateOfChild(child)];
  const { reason, message } = child.ready;
  const page = rootHref(child.apiVersion, child.kind, child.namespace, child.name);
  return (
    <li class={blocks ? 'leaf blocks' : 'leaf'}>
      <span class="name">
        {child.secret && <Icon name="lock" />}
        {page ? <a href={page}>{child.name}</a> : child.name}
        {child.namespace && child.namespace !== root && <span class="muted"> in {child.namespace}</span>}
      </span>
      {blocks && <span class="tag blocking">blocks</span>}
      <Status tone={blocks && tone !== 'muted' ? 'bad' : tone} icon={icon} label={label} />
      <Age time={child.created} />
      {(message || (reason && stateOfChild(child) === 'waiting')) && <span class="why muted">{beginning(message || reason || '', 300)}</span>}
    </li>
  );
}

function Kind({ branch, root }: { branch: Branch; root: string | null }) {
  const isUrgent = branch.blocking.size > 0 || branch.waiting > 0;
  const [isOpen, setOpen] = useState<boolean | null>(null);
  const [most, setMost] = useState(MOST);
  const open = isOpen ?? (isUrgent || branch.children.length <= FOLDED);
  const { waiting, children } = branch;
  return (
    <li class="kind">
      <button type="button" class="row" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={open ? 'chevron' : 'chevron-right'} />
        <strong>{branch.kind}</strong>
        <span class="muted small">{branch.apiVersion}</span>
        <span class="badge">{children.length.toLocaleString('en')}</span>
        {waiting > 0 && <span class="tone-warn small">{waiting === children.length && waiting > 1 ? 'none ready' : `${waiting.toLocaleString('en')} not ready`}</span>}
      </button>
      {open && (
        <ul class="plain" role="list">
          {children.slice(0, most).map((child) => <Leaf key={child.uid} child={child} blocks={branch.blocking.has(child.uid)} root={root} />)}
          {children.length > most && <li><Button small onClick={() => setMost(most + MOST)}>Show more of {count(children.length, branch.kind)}</Button></li>}
        </ul>
      )}
    </li>
  );
}

function Tree({ children: read, blocker, namespace }: { children: Read<Children>; blocker: string; namespace: string | null }) {
  const { value, problem, again } = read;
  if (!value) return problem ? <ProblemView problem={problem} retry={again} /> : <Skeleton lines={6} />;
  const found = branches(value.items, blocker);
  return (
    <div class="stack tight">
      {problem && <ProblemView problem={problem} retry={again} />}
      {found.length === 0 ? value.unread.length === 0 && <Empty title="No children" icon="tree">Its logic has made nothing.</Empty> : <ul class="plain tree card flush" role="list">{found.map((branch) => <Kind key={branch.key} branch={branch} root={namespace} />)}</ul>}
      {value.unread.length > 0 && <Notice tone="info" title="Not all kinds could be listed"><ul>{value.unread.map(({ kind, apiVersion, why }) => <li key={`${apiVersion} ${kind}`}><strong>{kind}</strong>: {why}</li>)}</ul></Notice>}
    </div>
  );
}

/** The children of an object, as they are now. */
export function ChildrenOf({ kind, object, title }: { kind: KindPath; object: K8sObject; title: string }) {
  const { name, namespace = null, uid, resourceVersion } = object.metadata;
  const { ready } = statefulOf(object);
  const [changes, setChanges] = useState(0);
  const children = useRead('listChildren', { ...kind, namespace, name }, { version: `${resourceVersion} ${changes}` });
  useChildChanges(children.value, uid, () => setChanges((before) => before + 1));
  return (
    <Section title={title} beside={children.value && (children.value.items.length > 0 || children.value.unread.length === 0) && <span class="muted num">{children.value.items.length.toLocaleString('en')}</span>}>
      <Tree children={children} blocker={ready.status === 'True' ? '' : ready.message} namespace={namespace} />
    </Section>
  );
}
