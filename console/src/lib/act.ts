// What a button does: whether it goes on, and why it failed.
import { useState } from 'preact/hooks';
import { asProblem, type Problem } from './api';

export function useAct(work: () => Promise<void>) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = () => {
    setBusy(true);
    setProblem(null);
    void work().catch((error: unknown) => setProblem(asProblem(error))).finally(() => setBusy(false));
  };
  return { run, busy, problem };
}
