import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Kind, Ready, Row } from '../../api/generated';
import { worstOf } from './overview';

const kind: Kind = { group: 'my.domain', version: 'v1', plural: 'webservers', kind: 'WebServer', namespaced: true, shortNames: [], reconcilers: [], mayList: true };
const row = (name: string, status: Ready['status'], since: string, more: Partial<Row> = {}): Row => ({
  namespace: 'a', name, uid: name, generation: 1, created: '', deleting: false, resourceVersion: '1', labels: {}, stalled: false, reconciling: false, suspended: false, fields: {},
  ready: { status, reason: '', message: '', current: true, since }, ...more,
});

test('of the failing roots those that only a change helps come first, then the newest', () => {
  const rows = [
    row('fine', 'True', '1'), row('old', 'False', '1'), row('new', 'False', '2'), row('stuck', 'False', '0', { stalled: true }),
    row('trying', 'False', '3', { reconciling: true }), row('paused', 'False', '4', { suspended: true }), row('going', 'False', '5', { deleting: true }),
  ];
  const { shown, total } = worstOf([{ kind, rows }], 3);
  assert.deepEqual([shown.map(({ row }) => row.name), total], [['stuck', 'trying', 'new'], 4]);
});
