// Pages by their address, with the History API. Addresses here are without /console.
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { asProblem, type Problem } from './api';
import { match } from './route';

export const BASE = '/console';

export interface PageProps {
  params: Record<string, string>;
}

export interface Route {
  path: string;
  /** The page's title, before the page itself knows better. */
  title: string | ((params: Record<string, string>) => string);
  /** Loads the page. */
  page?: () => Promise<ComponentType<PageProps>>;
  /** The page, where it is part of what every visit loads. */
  Page?: ComponentType<PageProps>;
}

interface Place {
  path: string;
  query: URLSearchParams;
  params: Record<string, string>;
  route: Route | null;
}

export const route = signal<Place>({ path: '/', query: new URLSearchParams(), params: {}, route: null });
/** The page that is shown: the one before, until the next is loaded. */
export const shown = signal<{ place: Place; Page: ComponentType<PageProps> } | null>(null);
export const loading = signal(false);
export const problem = signal<Problem | null>(null);
/** Read aloud when it changes. */
export const announced = signal('');

let routes: Route[] = [];
const pages = new Map<Route, ComponentType<PageProps>>();
/** How many forms would lose something. */
let guards = 0;
let turn = 0;
/** The address of the page that is shown. */
let shownAt = '';

/** An address of the browser for one of ours. */
export function href(path: string): string {
  return path.startsWith(BASE) ? path : `${BASE}${path}`;
}

function place(): Place {
  const path = location.pathname.startsWith(BASE) ? location.pathname.slice(BASE.length) || '/' : '/';
  const found = match(routes, path);
  return { path, query: new URLSearchParams(location.search), params: found?.params ?? {}, route: found?.entry ?? null };
}

function setTitle(title: string): void {
  document.title = title === 'Pintle' ? title : `${title} · Pintle`;
}

/** Sets the title of the page that is open, once it knows what it shows. */
export function useTitle(title: string): void {
  useEffect(() => setTitle(title), [title]);
}

function titleOf({ route, params }: Place): string {
  if (!route) return 'Not found';
  return typeof route.title === 'string' ? route.title : route.title(params);
}

/** Gives the window the title of its page again, after something else had taken it. */
export function retitle(): void {
  setTitle(titleOf(route.value));
}

export interface Going {
  replace?: boolean | undefined;
  /** Neither focus nor the scroll position moves: the same page in another state. */
  quiet?: boolean | undefined;
  /** Nothing would be lost: what was typed has been saved. */
  saved?: boolean | undefined;
}

/** Goes to a page. */
export function navigate(path: string, { replace = false, quiet = false, saved = false }: Going = {}): void {
  const to = href(path);
  if (!quiet && !saved && !mayLeave()) return;
  if (!quiet) keepScroll();
  const isSame = to === location.pathname + location.search;
  if (replace || isSame) history.replaceState(quiet ? history.state : { top: 0 }, '', to);
  else history.pushState({ top: 0 }, '', to);
  if (quiet) {
    shownAt = to;
    route.value = place();
  } else {
    void show({ focus: true, top: 0 });
  }
}

/** Changes what stands after the question mark, without leaving the page. */
export function setQuery(values: Record<string, string | null | undefined>): void {
  const query = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(values)) {
    if (value) query.set(key, value);
    else query.delete(key);
  }
  const text = query.toString();
  navigate(location.pathname + (text ? `?${text}` : ''), { replace: true, quiet: true });
}

/** One value of what stands after the question mark. */
export function queryOf(key: string): string {
  return route.value.query.get(key) ?? '';
}

function mayLeave(): boolean {
  return guards === 0 || confirm('What you changed has not been saved. Leave the page?');
}

/** Asks before the page is left while `isDirty`. */
export function useGuard(isDirty: boolean): void {
  useEffect(() => {
    if (!isDirty) return;
    const unload = (event: BeforeUnloadEvent): void => event.preventDefault();
    guards += 1;
    addEventListener('beforeunload', unload);
    return () => {
      guards -= 1;
      removeEventListener('beforeunload', unload);
    };
  }, [isDirty]);
}

function keepScroll(): void {
  history.replaceState({ ...(history.state as object | null), top: scrollY }, '');
}

async function show({ focus, top }: { focus: boolean; top: number }): Promise<void> {
  turn += 1;
  const mine = turn;
  const next = place();
  shownAt = location.pathname + location.search;
  route.value = next;
  problem.value = null;
  const title = titleOf(next);
  if (next.route?.page && !pages.has(next.route)) {
    loading.value = true;
    try {
      pages.set(next.route, await next.route.page());
    } catch (error) {
      if (mine !== turn) return;
      loading.value = false;
      problem.value = { ...asProblem(error), title: 'The page could not be loaded', detail: 'Perhaps the host has been upgraded since: reload the console.' };
      return;
    }
  }
  if (mine !== turn) return;
  loading.value = false;
  const Page = next.route ? (next.route.Page ?? pages.get(next.route)) : undefined;
  shown.value = Page ? { place: next, Page } : null;
  setTitle(title);
  if (focus) announced.value = title;
  settle(mine, focus, top);
}

/** Once the page is drawn: its heading gets the focus, and the window is where it was. A page that grows as it loads is followed a while. */
function settle(mine: number, focus: boolean, top: number): void {
  const begun = performance.now();
  const before = document.activeElement;
  let isFocused = !focus;
  const step = (): void => {
    if (mine !== turn) return;
    const at = document.activeElement;
    // Somebody has gone on with the keyboard already, before the page was painted.
    if (at !== before && at?.closest('main, dialog')) isFocused = true;
    if (!isFocused) {
      const heading = document.querySelector<HTMLElement>('main h1');
      if (heading) {
        heading.tabIndex = -1;
        heading.focus({ preventScroll: true });
        isFocused = true;
      }
    }
    const most = document.documentElement.scrollHeight - innerHeight;
    scrollTo(0, Math.min(top, Math.max(0, most)));
    if ((top <= most || top === 0) && isFocused) return;
    if (performance.now() - begun < 1500) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}

/** Links of the console are followed without loading it anew. */
function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target instanceof Element ? event.target.closest('a[href]') : null;
  if (!(link instanceof HTMLAnchorElement) || (link.target && link.target !== '_self') || link.hasAttribute('download')) return;
  if (link.origin !== location.origin || !(link.pathname === BASE || link.pathname.startsWith(`${BASE}/`)) || link.pathname.startsWith(`${BASE}/assets/`)) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}

/** Begins to follow addresses; once a page. */
export function startRouter(given: Route[]): void {
  routes = given;
  history.scrollRestoration = 'manual';
  addEventListener('popstate', (event) => {
    // The browser has gone already: who stays gets the address back.
    if (!mayLeave()) return history.pushState({ top: scrollY }, '', shownAt);
    const top = (event.state as { top?: number } | null)?.top ?? 0;
    void show({ focus: true, top });
  });
  addEventListener('pagehide', keepScroll);
  document.addEventListener('click', follow);
  void show({ focus: false, top: (history.state as { top?: number } | null)?.top ?? 0 });
}

/** A value that follows what is typed, but not at every letter. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
