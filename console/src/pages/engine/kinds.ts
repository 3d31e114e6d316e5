// Kinds by what the engine's objects say of them: apiVersion and kind.
import { useEffect } from 'preact/hooks';
import type { Kind } from '../../api/generated';
import { kindOf, kinds, kindsProblem, readKinds } from '../../lib/kinds';

/** The kind of an apiVersion and a kind; undefined while it is asked for, null when the caller may not know it. */
export function useKind({ apiVersion, kind }: { apiVersion: string; kind: string }): Kind | null | undefined {
  const found = kindOf(apiVersion, kind);
  const isMissing = found === undefined;
  useEffect(() => {
    if (isMissing) void readKinds();
  }, [isMissing, apiVersion, kind]);
  if (found) return found;
  return kinds.value || kindsProblem.value ? null : undefined;
}

/** Makes sure that the kinds are read: what links to a root needs them. */
export function useKinds(): void {
  useEffect(() => {
    if (!kinds.peek()) void readKinds();
  }, []);
}
