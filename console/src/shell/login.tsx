// Signing in: a page when nobody has yet, a dialog over the page when a login has ended.
import { useState } from 'preact/hooks';
import type { Problem } from '../lib/api';
import { expired, later, type SignIn, signIn, signInWith, start } from '../lib/session';
import { useTitle } from '../lib/router';
import { Button } from '../ui/button';
import { CopyText } from '../ui/copy';
import { Dialog } from '../ui/dialog';
import { Notice, ProblemView } from '../ui/feedback';
import { Field } from '../ui/field';
import { Switch, TextInput } from '../ui/inputs';
import { Mark } from './mark';

const COMMAND = 'kubectl create token NAME --namespace NAMESPACE --duration 8h';

/** What a refusal means for somebody who signs in. */
function words(problem: Problem): Problem {
  if (problem.status !== 401) return problem;
  return { ...problem, title: 'This cluster does not accept the token', detail: problem.detail || 'It may have expired, or be meant for another cluster.' };
}

function useSignIn(mode: 'local' | 'token', initial: Problem | null) {
  const [typed, setTyped] = useState('');
  const [isShown, setShown] = useState(false);
  const [problem, setProblem] = useState(initial);
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    if (busy || typed.trim() === '') return;
    setBusy(true);
    setProblem(await signInWith(typed));
    setBusy(false);
  };
  const fields = mode === 'token' ? (
    <>
      <Field label="Token" required help="It stays in the memory of the open tabs, and is sent to this console alone.">
        <TextInput value={typed} onInput={setTyped} type={isShown ? 'text' : 'password'} mono autofocus autocomplete="off" />
      </Field>
      <Switch checked={isShown} onChange={setShown}>Show it</Switch>
      <div class="field">
        <span class="label">No token? A ServiceAccount's is made by</span>
        <div class="command"><CopyText text={COMMAND} what="command" /></div>
      </div>
    </>
  ) : (
    <Field label="Address or secret" required help={<>The address that <code>pintle console</code> printed, or what stands in it after the #.</>}>
      <TextInput value={typed} onInput={setTyped} mono autofocus />
    </Field>
  );
  const refused = problem && <ProblemView problem={mode === 'token' ? words(problem) : problem} />;
  return { fields, refused, busy, submit, isEmpty: typed.trim() === '' };
}

function SignInForm({ mode, problem }: { mode: 'local' | 'token'; problem: Problem | null }) {
  const { fields, refused, busy, submit, isEmpty } = useSignIn(mode, problem);
  return (
    <form class="stack" onSubmit={(event) => {
      event.preventDefault();
      void submit();
    }}>
      {mode === 'local'
        ? <p>This console acts with the rights of whoever started it, so it opens only for them: use the address that <code>pintle console</code> printed.</p>
        : <p>The console asks the cluster as you: it can do what you can do with kubectl, and nothing else.</p>}
      {fields}
      {refused}
      <div class="toolbar"><Button type="submit" variant="primary" busy={busy} disabled={isEmpty}>Sign in</Button></div>
    </form>
  );
}

type NotIn = Extract<SignIn, { state: 'out' | 'failed' }>;

function Login({ state }: { state: NotIn }) {
  useTitle('Sign in');
  return (
    <main class="login">
      <div class="login-card">
        <Mark />
        <h1>{state.state === 'failed' ? 'The console has no host' : 'Sign in to Pintle'}</h1>
        {state.state === 'failed' ? <ProblemView problem={state.problem} retry={() => void start()} /> : <SignInForm mode={state.mode} problem={state.problem} />}
      </div>
    </main>
  );
}

/** The page of somebody who is not signed in; nothing, while that is not known. */
export function LoginPage() {
  const state = signIn.value;
  return state.state === 'starting' || state.state === 'in' ? <div class="login" aria-busy="true" /> : <Login state={state} />;
}

function AskAgain({ problem, mode }: { problem: Problem; mode: 'local' | 'token' }) {
  const { fields, refused, busy, submit, isEmpty } = useSignIn(mode, null);
  return (
    <Dialog
      title="Sign in again"
      onClose={later}
      onSubmit={() => void submit()}
      actions={
        <>
          <Button onClick={later}>Not now</Button>
          <Button type="submit" variant="primary" busy={busy} disabled={isEmpty}>Sign in</Button>
        </>
      }
    >
      <Notice tone="warn">{problem.detail || 'The login has ended.'} The page stays as it is.</Notice>
      {fields}
      {refused}
    </Dialog>
  );
}

/** Asks once, over the page, when a login has ended. */
export function SignInAgain({ mode }: { mode: 'local' | 'token' }) {
  const state = expired.value;
  return state?.isAsking ? <AskAgain problem={state.problem} mode={mode} /> : null;
}
