// What every visit loads.
import { render } from 'preact';
import { startKeys } from './lib/keys';
import { startRouter } from './lib/router';
import { signIn, start } from './lib/session';
import { routes } from './routes';
import { LoginPage } from './shell/login';
import { Shell } from './shell/shell';

function Console() {
  return signIn.value.state === 'in' ? <Shell /> : <LoginPage />;
}

/** Draws the console, and resolves once the host has said who this is. */
export async function open(): Promise<void> {
  const app = document.getElementById('app');
  if (!app) throw new Error('the page has no place for the console');
  startKeys();
  const asked = start();
  startRouter(routes);
  render(<Console />, app);
  await asked;
}
