// The wire between a browser and the console: a proxy that can be cut, and that knows all that goes through it, also what a SharedWorker asks
// for, which no page sees.
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, type Socket } from 'node:net';

/** A request that came through, and what of its answer has come so far. */
export interface Passed {
  method: string;
  /** Path and query, as they were sent on. */
  path: string;
  headers: IncomingMessage['headers'];
  status: number;
  body: string;
  /** Whether nothing of it will come any more. */
  isOver: boolean;
}

export class Wire {
  /** Everything since it was opened, or since `forget`. */
  passed: Passed[] = [];
  /** Changes the path of a request before it is sent on. */
  rewrite = (path: string): string => path;
  /** What each request has besides its own headers, such as what an EventSource cannot send. */
  adds: Record<string, string> = {};
  #sockets = new Set<Socket>();
  #isCut = false;
  /** How often it was frozen. */
  #frosts = 0;
  #server: Server;

  private constructor() {
    this.#server = createServer((asked, answer) => this.#pass(asked, answer));
    this.#server.on('connection', (socket) => {
      if (this.#isCut) return void socket.destroy();
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
    });
  }

  static async open(): Promise<Wire> {
    const wire = new Wire();
    await new Promise<void>((resolve) => wire.#server.listen(0, '127.0.0.1', resolve));
    return wire;
  }

  /** What a browser is given as its proxy. */
  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Ends every connection, and takes none until it is mended. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  /** Connections that are there stay, and nothing comes through them any more. New ones work. */
  freeze(): void {
    this.#frosts += 1;
  }

  forget(): void {
    this.passed = [];
  }

  /** What was asked for that fits. */
  asked(what: RegExp): Passed[] {
    return this.passed.filter(({ method, path }) => what.test(`${method} ${path}`));
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #pass(asked: IncomingMessage, answer: ServerResponse): void {
    const { origin, pathname, search } = new URL(asked.url ?? '');
    const path = this.rewrite(pathname + search);
    // What is not compressed can be searched.
    const { 'accept-encoding': _, 'proxy-connection': __, ...headers } = asked.headers;
    const passed: Passed = { method: asked.method ?? '', path, headers: { ...headers, ...this.adds }, status: 0, body: '', isOver: false };
    this.passed.push(passed);
    const frosts = this.#frosts;
    const isFrozen = () => frosts !== this.#frosts;
    const onward = request(origin + path, { method: passed.method, headers: passed.headers, agent: false }, (came) => {
      passed.status = came.statusCode ?? 0;
      answer.writeHead(passed.status, came.rawHeaders);
      // A stream that has nothing to tell yet has begun all the same.
      answer.flushHeaders();
      came.setEncoding('latin1');
      came.on('data', (piece: string) => {
        if (isFrozen()) return;
        passed.body += piece;
        answer.write(piece, 'latin1');
      });
      came.on('end', () => isFrozen() || answer.end());
      came.on('error', () => isFrozen() || answer.destroy());
    });
    onward.on('error', () => isFrozen() || answer.destroy());
    answer.on('close', () => {
      passed.isOver = true;
      onward.destroy();
    });
    asked.pipe(onward);
  }
}
