// A `pintle console` of its own, for tests that end it, or that look at how the browser is opened.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLUSTER_PATIENCE } from './patience';
import { env, expect } from './world';

export class Launch {
  /** All that it has printed. */
  said = '';
  #process: ChildProcess;
  #folder: string;

  private constructor(process: ChildProcess, folder: string) {
    this.#process = process;
    this.#folder = folder;
    process.stdout?.setEncoding('utf8').on('data', (piece: string) => (this.said += piece));
  }

  /** Starts one. Where it would open a browser, it finds a program that only notes with what words it was started. */
  static async start(...words: string[]): Promise<Launch> {
    const folder = mkdtempSync(join(tmpdir(), 'pintle-launch-'));
    writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\nprintf '%s\\n' "$@" > '${folder}/words.new' && mv '${folder}/words.new' '${folder}/words'\n`, { mode: 0o755 });
    const started = spawn(env('PINTLE'), ['console', ...words], {
      env: { ...process.env, KUBECONFIG: env('KUBECONFIG'), PATH: `${folder}:${process.env.PATH}` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const launch = new Launch(started, folder);
    const ended = new Promise<never>((_, reject) => started.once('close', () => reject(new Error(`pintle console has ended, and said ${launch.said || 'nothing'}`))));
    try {
      await Promise.race([ended, expect.poll(() => launch.said, { message: 'it prints its address' }).toMatch(/#\w+\n/)]);
    } catch (error) {
      await launch.stop();
      throw error;
    }
    return launch;
  }

  /** The address that it printed. */
  get address(): string {
    const found = /http:\/\/\S+#\w+/.exec(this.said)?.[0];
    if (!found) throw new Error(`no address: ${this.said}`);
    return found;
  }

  get origin(): string {
    return new URL(this.address).origin;
  }

  /** With what words a browser was opened. */
  async opened(): Promise<string[]> {
    const words = join(this.#folder, 'words');
    await expect.poll(() => existsSync(words), { message: 'a browser is opened' }).toBe(true);
    return readFileSync(words, 'utf8').trimEnd().split('\n');
  }

  /** Ends it as Ctrl-C does. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    // Not before all that it has printed is read.
    const ended = new Promise((resolve) => this.#process.once('close', resolve));
    this.#process.kill('SIGINT');
    const late = setTimeout(() => {
      process.stderr.write('pintle console does not end, and is killed\n');
      this.#process.kill('SIGKILL');
    }, CLUSTER_PATIENCE);
    await ended;
    clearTimeout(late);
  }

  /** Ends it, and clears away what the test made for it. */
  async stop(): Promise<void> {
    await this.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
