// Every Module, and the place to upload one.
import { useMemo, useState } from 'preact/hooks';
import type { Row } from '../../api/generated';
import { useCan } from '../../lib/can';
import type { K8sObject, ModuleSpec, ModuleStatus } from '../../lib/kubernetes';
import { navigate, queryOf, setQuery } from '../../lib/router';
import { MODULES, useObject, useRows } from '../../lib/store';
import { Age } from '../../ui/age';
import { Button } from '../../ui/button';
import { CopyText } from '../../ui/copy';
import { Dialog } from '../../ui/dialog';
import { Empty, Notice, ProblemView, Skeleton } from '../../ui/feedback';
import { SearchInput } from '../../ui/inputs';
import { KeyValue, Page, PageHead, Section, Toolbar } from '../../ui/layout';
import { Blocker, Conditions } from '../../ui/condition-list';
import { statefulOf, stateOf } from '../../ui/conditions';
import { Status } from '../../ui/status';
import { type Column, VirtualTable } from '../../ui/virtual';
import { YamlView } from '../../ui/yaml';
import { DeleteDialog } from './delete-dialog';
import { manifestIn } from './manifest';
import { ENGINE_PAGE, modulePage, userPage } from './paths';
import { Listed, number, text, texts } from './shared';
import { UploadZone } from './upload';
import { bytes, enumeration, shortDigest } from './words';

const FIELDS = ['spec.digest', 'status.size', 'status.usedBy', 'status.manifest.name', 'status.manifest.version', 'status.manifest.reconciles.kind'];

function userWord(user: string): string {
  return user.startsWith('view/') ? `View ${user.slice('view/'.length)}` : user;
}

const COLUMNS: Column<Row>[] = [
  { key: 'name', title: 'Name', cell: ({ name }) => <a class="cut" href={modulePage(name)}>{name}</a>, sort: (one, other) => one.name.localeCompare(other.name) },
  { key: 'state', title: 'State', cell: (row) => <Status row={row} />, sort: (one, other) => stateOf(one).rank - stateOf(other).rank, width: '124px' },
  { key: 'guest', title: 'Reconciles', cell: ({ fields }) => <span class="cut">{text(fields['status.manifest.reconciles.kind']) ?? <span class="muted">-</span>}</span>, sort: (one, other) => (text(one.fields['status.manifest.reconciles.kind']) ?? '').localeCompare(text(other.fields['status.manifest.reconciles.kind']) ?? ''), priority: 2 },
  { key: 'users', title: 'Used by', cell: ({ fields }) => <span class="cut">{texts(fields['status.usedBy']).map(userWord).join(', ') || <span class="muted">nobody</span>}</span>, priority: 2 },
  { key: 'size', title: 'Size', cell: ({ fields }) => <span class="num">{fields['status.size'] === undefined ? '-' : bytes(number(fields['status.size']) ?? 0)}</span>, sort: (one, other) => (number(one.fields['status.size']) ?? 0) - (number(other.fields['status.size']) ?? 0), width: '90px', end: true, priority: 3 },
  { key: 'digest', title: 'Digest', cell: ({ fields }) => <code>{shortDigest(text(fields['spec.digest']))}</code>, width: '130px', priority: 3 },
  { key: 'age', title: 'Age', cell: ({ created }) => <Age time={created} />, sort: (one, other) => other.created.localeCompare(one.created), width: '80px', end: true, priority: 3 },
];

function About({ module, onDelete }: { module: K8sObject; onDelete: () => void }) {
  const name = module.metadata.name;
  const spec = (module.spec ?? {}) as unknown as ModuleSpec;
  const status = (module.status ?? {}) as unknown as ModuleStatus;
  const can = useCan({ verb: 'delete', group: MODULES.group, resource: MODULES.plural, name }).value;
  const users = status.usedBy ?? [];
  const manifest = manifestIn(status.manifest);
  const source = spec.source?.configMap;
  const why = users.length > 0 ? `It is used by ${enumeration(users.map(userWord))}.` : can === false ? 'You may not delete this Module.' : undefined;
  return (
    <>
      <div class="split">
        <Status pill row={statefulOf(module)} />
        <Button small icon="trash" disabled={users.length > 0 || can !== true} title={why} onClick={onDelete}>Delete</Button>
      </div>
      <Blocker object={module} />
      <KeyValue
        items={[
          ['Used by', users.length === 0 ? <span class="muted">nobody</span> : <>{users.map((user, index) => <span key={user}>{index > 0 && ', '}<a href={userPage(user)}>{userWord(user)}</a></span>)}</>],
          ['Digest', <CopyText text={spec.digest} shown={spec.digest} what="digest" />],
          status.size === undefined ? undefined : ['Size', bytes(status.size)],
          status.contract ? ['Contract', <code>{status.contract}</code>] : undefined,
          status.compileMilliseconds === undefined ? undefined : ['Compiled in', <span class="num">{status.compileMilliseconds.toLocaleString('en')} ms</span>],
          source ? ['Bytes in', <span>ConfigMap <code>{source.namespace}/{source.name}</code></span>] : undefined,
          ['Created', <Age time={module.metadata.creationTimestamp} ago />],
        ]}
      />
      {manifest && <Section title="Manifest"><YamlView value={manifest} label="Manifest" max="360px" /></Section>}
      <Section title="Conditions"><Conditions object={module} /></Section>
    </>
  );
}

function ModuleDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const { object, problem } = useObject(MODULES, null, name);
  const [condemned, condemn] = useState<K8sObject | null>(null);
  const module = object.value;
  if (condemned) {
    return (
      <DeleteDialog kind={MODULES} object={condemned} title={`Delete Module ${name}?`} said={`Module ${name} is deleted.`} onDone={onClose} onClose={() => condemn(null)}>
        <p>Nobody uses it. To have it again, it has to be uploaded again.</p>
      </DeleteDialog>
    );
  }
  return (
    <Dialog wide title={name} onClose={onClose}>
      {problem.value && <ProblemView problem={problem.value} />}
      {module === null && <Empty title={`There is no Module ${name}`} icon="search" />}
      {module === undefined && !problem.value && <Skeleton />}
      {module && <About module={module} onDelete={() => condemn(module)} />}
      {module?.metadata.deletionTimestamp && <Notice tone="info">It is being deleted.</Notice>}
    </Dialog>
  );
}

export function ModulesPage() {
  const list = useRows(MODULES, { fields: FIELDS });
  const [search, setSearch] = useState('');
  const rows = list.rows.value;
  const shown = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return wanted === '' ? rows : rows.filter(({ name, fields }) => `${name} ${text(fields['status.manifest.reconciles.kind']) ?? ''} ${text(fields['spec.digest']) ?? ''}`.toLowerCase().includes(wanted));
  }, [rows, search]);
  const open = queryOf('name');
  return (
    <Page>
      <PageHead title="Modules" subtitle="The logic: WebAssembly components that never change once they are here." breadcrumbs={[{ label: 'Engine', href: ENGINE_PAGE }]} />
      <UploadZone modules={rows} />
      <Listed list={list} empty={<Empty title="No Modules yet" icon="module">Drop one above, or run <code>pintle push NAME FILE</code>.</Empty>}>
        {() => (
          <>
            {rows.length > 5 && <Toolbar><SearchInput value={search} onInput={setSearch} label="Filter Modules" hint="/" /></Toolbar>}
            <VirtualTable label="Modules" rows={shown} columns={COLUMNS} rowKey={({ uid }) => uid} onOpen={({ name }) => navigate(modulePage(name), { quiet: true })} initial={{ key: 'age', down: false }} />
          </>
        )}
      </Listed>
      {open && <ModuleDialog key={open} name={open} onClose={() => setQuery({ name: null })} />}
    </Page>
  );
}
