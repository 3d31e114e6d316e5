// Server-sent events, as they come in pieces over a fetch.
import { createParser, type EventSourceMessage } from 'eventsource-parser';

export type Message = EventSourceMessage;

/** The most that one event may hold; a server that sends more is broken, and the page would rather say so than fill up. */
const MAX_EVENT = 8 * 1024 * 1024;

/** Reads the events of an answer, a few at a time, as they arrive. Fails when nothing comes for `silence` milliseconds. */
export async function* readEvents(body: ReadableStream<Uint8Array>, silence: number): AsyncGenerator<Message[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let found: Message[] = [];
  const parser = createParser({
    maxBufferSize: MAX_EVENT,
    onEvent: (message) => found.push(message),
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw error;
    },
  });
  try {
    for (;;) {
      const { done, value } = await orSilence(reader.read(), silence);
      if (done) return;
      found = [];
      parser.feed(decoder.decode(value, { stream: true }));
      yield found;
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
