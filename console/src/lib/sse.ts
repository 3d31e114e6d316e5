// Server-sent events, as they come in pieces over a fetch.

export interface Message {
  event: string;
  data: string;
}

/** The most that one event may hold; a server that sends more is broken, and the page would rather say so than fill up. */
const MAX_EVENT = 8 * 1024 * 1024;

/** Puts the pieces of a stream together. Comments are dropped, and so are events without data. */
export class SseParser {
  #rest = '';
  #event = '';
  #data: string[] = [];
  #size = 0;

  /** The events that this piece completes. */
  push(piece: string): Message[] {
    const found: Message[] = [];
    const text = this.#rest + piece;
    let from = 0;
    for (;;) {
      const end = lineEnd(text, from);
      if (!end) break;
      this.#line(text.slice(from, end.at), found);
      from = end.next;
    }
    this.#rest = text.slice(from);
    if (this.#rest.length + this.#size > MAX_EVENT) throw new Error('an event of the stream is too large');
    return found;
  }

  #line(line: string, found: Message[]): void {
    if (line === '') {
      if (this.#data.length > 0) found.push({ event: this.#event || 'message', data: this.#data.join('\n') });
      this.#event = '';
      this.#data = [];
      this.#size = 0;
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') this.#event = value;
    if (field === 'data') {
      this.#data.push(value);
      this.#size += value.length;
    }
  }
}

/** Where a line ends, and where the next begins. A carriage return at the very end may be half of a pair, so it is no end yet. */
function lineEnd(text: string, from: number): { at: number; next: number } | null {
  for (let at = from; at < text.length; at += 1) {
    const sign = text.charCodeAt(at);
    if (sign === 10) return { at, next: at + 1 };
    if (sign === 13) {
      if (at + 1 === text.length) return null;
      return { at, next: text.charCodeAt(at + 1) === 10 ? at + 2 : at + 1 };
    }
  }
  return null;
}

/** Reads the events of an answer, a few at a time, as they arrive. Fails when nothing comes for `silence` milliseconds. */
export async function* readEvents(body: ReadableStream<Uint8Array>, silence: number): AsyncGenerator<Message[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new SseParser();
  try {
    for (;;) {
      const { done, value } = await orSilence(reader.read(), silence);
      if (done) return;
      yield parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

function orSilence<T>(promise: Promise<T>, milliseconds: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the stream fell silent')), milliseconds);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
