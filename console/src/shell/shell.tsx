// The frame around every page.
import type { ComponentChildren } from 'preact';
import { Component } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { search, step, useAction } from '../lib/keys';
import { readKinds } from '../lib/kinds';
import { namespaceShown } from '../lib/namespace';
import { announced, loading, problem, retitle, shown } from '../lib/router';
import { expired, session, signOut } from '../lib/session';
import { RECONCILER_FIELDS, RECONCILERS, useRows } from '../lib/store';
import { asProblem, type Problem } from '../lib/api';
import { Button, LinkButton } from '../ui/button';
import { useModal } from '../ui/dialog';
import { Empty, ProblemView } from '../ui/feedback';
import { Toaster } from '../ui/toaster';
import { Help } from './help';
import { SignInAgain } from './login';
import { Nav } from './nav';
import { Palette } from './palette';
import { ConnectionBanner, TopBar } from './topbar';

/** A page that fails takes only itself down. */
class Fence extends Component<{ children: ComponentChildren; place: string }, { failed: Problem | null; place: string }> {
  override state = { failed: null as Problem | null, place: this.props.place };

  static override getDerivedStateFromError(error: unknown) {
    return { failed: { ...asProblem(error), title: 'This page has failed' } };
  }

  static override getDerivedStateFromProps({ place }: { place: string }, state: { place: string }) {
    return place === state.place ? null : { failed: null, place };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <div class="page">
        <h1>This page has failed</h1>
        <ProblemView problem={this.state.failed} retry={() => this.setState({ failed: null })} />
      </div>
    );
  }
}

function CurrentPage() {
  if (problem.value) {
    return (
      <div class="page">
        <h1>The page could not be loaded</h1>
        <ProblemView problem={problem.value} />
        <div class="toolbar"><Button icon="refresh" onClick={() => location.reload()}>Reload the console</Button></div>
      </div>
    );
  }
  const at = shown.value;
  if (!at) {
    if (loading.value) return <div class="page" aria-busy="true" />;
    return (
      <div class="page">
        <h1 class="sr-only">Not found</h1>
        <Empty title="There is no such page" actions={<LinkButton href="/console/">Dashboard</LinkButton>}>The address may be mistyped, or from another version of the console.</Empty>
      </div>
    );
  }
  const { Page, place } = at;
  return <Fence place={place.path}><Page key={place.path} params={place.params} /></Fence>;
}

/** The navigation on a narrow screen: a drawer. */
function Drawer({ onClose }: { onClose: () => void }) {
  const modal = useModal(onClose);
  return (
    <dialog {...modal} class="drawer" aria-label="Menu" onClick={(event) => event.target instanceof Element && event.target.closest('a') && onClose()}>
      <Nav label="Menu" />
    </dialog>
  );
}

/** Reads the kinds anew whenever a Reconciler comes, goes, or begins to serve, and for another namespace: who may list them there is another question. */
function KindsReader() {
  const { rows, state } = useRows(RECONCILERS, { fields: RECONCILER_FIELDS });
  const known = rows.value.map((row) => `${row.name} ${String(row.fields['spec.for.apiVersion'])} ${String(row.fields['spec.for.kind'])} ${row.ready.status}`).join('|');
  const isKnown = state.value !== 'loading' && session.value !== null;
  const namespace = namespaceShown();
  useEffect(() => {
    if (isKnown) void readKinds();
  }, [known, isKnown, namespace]);
  return null;
}

export function Shell() {
  const [open, setOpen] = useState<'palette' | 'help' | 'menu' | null>(null);
  const close = () => setOpen(null);
  useEffect(retitle, []);
  const isAsked = expired.value?.isAsking ?? false;
  useEffect(() => {
    if (isAsked) close();
  }, [isAsked]);
  useAction({ id: 'palette', title: 'Palette', group: 'Anywhere', isHidden: true, run: () => setOpen('palette') });
  useAction({ id: 'help', title: 'Keyboard', key: '?', group: 'Anywhere', run: () => setOpen('help') });
  useAction({ id: 'search', title: 'Search this page', key: '/', group: 'Anywhere', isHidden: true, run: search });
  useAction({ id: 'next', title: 'Next row', key: 'j', group: 'In tables', isHidden: true, run: () => step(true) });
  useAction({ id: 'previous', title: 'Previous row', key: 'k', group: 'In tables', isHidden: true, run: () => step(false) });
  useAction({ id: 'sign-out', title: 'Sign out', group: 'Action', when: session.value?.mode === 'token', run: signOut });

  return (
    <>
      <a class="skip" href="#content" onClick={(event) => {
        event.preventDefault();
        const heading = document.querySelector<HTMLElement>('main h1') ?? document.querySelector<HTMLElement>('main');
        if (heading) heading.tabIndex = -1;
        heading?.focus();
      }}>Skip to the content</a>
      <KindsReader />
      <div class="frame">
        <div class="side"><Nav /></div>
        <div class="body">
          <TopBar onMenu={() => setOpen('menu')} onPalette={() => setOpen('palette')} onHelp={() => setOpen('help')} />
          {loading.value && <div class="loading" role="progressbar" aria-label="Loading the page" />}
          <ConnectionBanner />
          <main id="content"><CurrentPage /></main>
        </div>
      </div>
      {open === 'palette' && <Palette onClose={close} />}
      {open === 'help' && <Help onClose={close} />}
      {open === 'menu' && <Drawer onClose={close} />}
      <SignInAgain mode={session.value?.mode ?? 'token'} />
      <div class="sr-only" role="status" aria-live="polite">{announced.value}</div>
      <Toaster />
    </>
  );
}
