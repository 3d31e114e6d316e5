// Events, newest first.
import { useState } from 'preact/hooks';
import type { ClusterEvent } from '../../api/generated';
import type { ObjectEvents } from '../../lib/events';
import { rootHref } from '../../lib/kinds';
import { Age } from '../../ui/age';
import { Button } from '../../ui/button';
import { Empty, ProblemView, Skeleton } from '../../ui/feedback';
import { Icon } from '../../ui/icon';
import { beginning } from '../../ui/text';
import { modulePage, reconcilerPage, VIEWS_PAGE } from './paths';
import { ObjectName } from './shared';

const PAGE = 100;

/** The page of what an event is about, if there is one. */
export function pageOf({ apiVersion, kind, namespace, name }: ClusterEvent['regarding']): string | undefined {
  if (apiVersion.startsWith('pintle.dev/')) return { Reconciler: reconcilerPage(name), Module: modulePage(name), View: VIEWS_PAGE }[kind];
  return rootHref(apiVersion, kind, namespace, name) ?? undefined;
}

/** Whether an event fits what was typed and chosen. */
export function fits(event: ClusterEvent, { type, namespace, search }: { type: string; namespace: string; search: string }): boolean {
  const wanted = search.trim().toLowerCase();
  const { regarding } = event;
  return (type === '' || event.type === type)
    && (namespace === '' || (regarding.namespace ?? '') === namespace)
    && (wanted === '' || `${event.reason} ${regarding.kind} ${regarding.namespace ?? ''}/${regarding.name} ${event.note}`.toLowerCase().includes(wanted));
}

export function EventList({ events, quiet }: { events: readonly ClusterEvent[]; quiet?: boolean | undefined }) {
  const [most, setMost] = useState(PAGE);
  return (
    <>
      <ul class="plain event-list card flush" role="list" aria-label="Events">
        {events.slice(0, most).map((event) => {
          const isWarning = event.type === 'Warning';
          return (
            <li key={event.uid}>
              <Icon name={isWarning ? 'alert' : 'info'} class={isWarning ? 'tone-warn' : 'tone-muted'} />
              <div class="what">
                <div class="head">
                  <strong><span class="sr-only">{event.type}: </span>{event.reason}</strong>
                  {!quiet && <ObjectName reference={event.regarding} href={pageOf(event.regarding)} />}
                </div>
                <p class="words">{beginning(event.note, 600)}</p>
              </div>
              <span class="when small muted">
                <Age time={event.last ?? event.first} ago />
                {event.count > 1 && <span class="num" title={`first ${event.first ?? ''}`}>{event.count.toLocaleString('en')} times</span>}
              </span>
            </li>
          );
        })}
      </ul>
      {events.length > most && <Button onClick={() => setMost(most + PAGE)}>Show more of {events.length.toLocaleString('en')}</Button>}
    </>
  );
}

/** The Events about one object. */
export function EventsOf({ events, problem, again }: ObjectEvents) {
  if (problem) return <ProblemView problem={problem} retry={again} />;
  if (!events) return <Skeleton lines={5} />;
  if (events.length === 0) return <Empty icon="clock" title="Nothing has happened lately">The cluster forgets events after about an hour.</Empty>;
  return <EventList events={events} quiet />;
}
