// Tells when a child of a root changes: a Deployment whose Pods come up changes long before its root does.
import { useEffect } from 'preact/hooks';
import { listen } from './stream';
import type { Children } from '../api/generated';

/** So many kinds are watched. Of those beyond, changes are seen when the root changes. */
const MAX_KINDS = 12;

/** Calls back whenever one of these children changes, for as long as the component is there. */
export function useChildChanges(children: Children | undefined, root: string, changed: () => void): void {
  const kinds = children?.watched.slice(0, MAX_KINDS) ?? [];
  const key = kinds.map(({ group, version, plural, namespace }) => `${group}/${version}/${plural}/${namespace ?? ''}`).join(' ');
  useEffect(() => {
    const stops = kinds.map(({ group, version, plural, namespace, resourceVersion }) =>
      listen({ group, version, plural, ...(namespace ? { namespace } : {}), root, from: resourceVersion }, ({ type }) => {
        if (type === 'changes') changed();
      }),
    );
    return () => stops.forEach((stop) => stop());
  }, [key, root]);
}
