// The SharedWorker: one hub, and so one stream, for all tabs of the console.
import { readProblem } from './lib/api';
import { Hub, type ToHub, type ToPage } from './lib/hub';
import { world } from './lib/world';

const hub = new Hub(world, readProblem);

/** A tab says hello with the name of a lock that it holds for as long as it lives. */
type FromPort = ToHub | { type: 'alive'; lock: string };

(globalThis as unknown as SharedWorkerGlobalScope).onconnect = (event) => {
  const port = event.ports[0];
  if (!port) return;
  const client = hub.connect((message: ToPage) => port.postMessage(message));
  port.onmessage = ({ data }: MessageEvent<FromPort>) => {
    if (data.type !== 'alive') return client.post(data);
    // The lock is free when the tab is gone, also when it crashed.
    void navigator.locks?.request(data.lock, () => client.post({ type: 'gone' }));
  };
};

interface SharedWorkerGlobalScope {
  onconnect: ((event: MessageEvent) => void) | null;
}
