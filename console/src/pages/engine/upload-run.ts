// A file on its way to being a Module: read, checked by the host, named, created.
import { signal } from '@preact/signals';
import { call } from '../../api/call';
import type { Examined } from '../../api/generated';
import { asProblem, type Problem, ProblemError, problemOf } from '../../lib/api';
import { type Manifest, manifestIn } from './manifest';
import { nameFromFile } from './words';

export interface UploadState {
  phase: 'idle' | 'reading' | 'checking' | 'checked' | 'creating' | 'created' | 'refused';
  file: { name: string; size: number } | null;
  verified: Examined | null;
  manifest: Manifest | null;
  /** The name that is proposed for it. */
  proposed: string;
  /** Why it was refused. When creating is, the phase is `checked` again. */
  problem: Problem | null;
}

export const NOTHING: UploadState = { phase: 'idle', file: null, verified: null, manifest: null, proposed: '', problem: null };

/** Larger files are not even read: no host takes them (`MODULE_BYTES_MAX` of host/engine). */
const MOST = 8 * 1024 * 1024;

/** A name that no Module has, for a check that is about the bytes alone. */
function nameOfCheck(): string {
  const random = crypto.getRandomValues(new Uint8Array(8));
  return `check-${[...random].map((one) => one.toString(16).padStart(2, '0')).join('')}`;
}

function put(name: string, bytes: ArrayBuffer, isDry: boolean): Promise<Examined> {
  return call('uploadModule', { path: { name }, query: { dryRun: isDry ? 'All' : null }, body: bytes });
}

export class Upload {
  readonly state = signal<UploadState>(NOTHING);
  #bytes: ArrayBuffer | null = null;
  #turn = 0;

  async take(file: File): Promise<void> {
    this.#turn += 1;
    const mine = this.#turn;
    const say = (change: Partial<UploadState>) => {
      if (mine === this.#turn) this.state.value = { ...this.state.value, ...change };
    };
    this.#bytes = null;
    this.state.value = { ...NOTHING, phase: 'reading', file: { name: file.name, size: file.size } };
    try {
      if (file.size === 0) throw new ProblemError(problemOf(0, 'The file is empty', `${file.name} has no bytes.`));
      if (file.size > MOST) throw new ProblemError(problemOf(413, 'The file is too large', `${file.name} is larger than any module may be.`));
      const bytes = await file.arrayBuffer();
      say({ phase: 'checking' });
      const verified = await put(nameOfCheck(), bytes, true);
      if (mine !== this.#turn) return;
      this.#bytes = bytes;
      const manifest = manifestIn(verified.manifest);
      say({ phase: 'checked', verified, manifest, proposed: nameFromFile(file.name, manifest) });
    } catch (error) {
      say({ phase: 'refused', problem: asProblem(error) });
    }
  }

  async create(name: string): Promise<Examined | null> {
    const bytes = this.#bytes;
    if (!bytes || this.state.value.phase !== 'checked') return null;
    const mine = this.#turn;
    this.state.value = { ...this.state.value, phase: 'creating', problem: null };
    try {
      const verified = await put(name, bytes, false);
      if (mine === this.#turn) this.state.value = { ...this.state.value, phase: 'created', verified };
      return verified;
    } catch (error) {
      if (mine === this.#turn) this.state.value = { ...this.state.value, phase: 'checked', problem: asProblem(error) };
      return null;
    }
  }

  forget(): void {
    this.#turn += 1;
    this.#bytes = null;
    this.state.value = NOTHING;
  }
}
