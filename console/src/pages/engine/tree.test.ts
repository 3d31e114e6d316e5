import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Child } from '../../api/generated';
import { branches, stateOfChild } from './tree';

const child = (kind: string, name: string, status: Child['ready']['status'] = 'True', deleting = false): Child => ({ apiVersion: 'v1', kind, namespace: 'shop', name, uid: `${kind}-${name}`, created: '2026-01-01T00:00:00Z', deleting, ready: { status, reason: '', message: '' }, secret: false });

test('a child that is being deleted is no longer ready', () => {
  assert.equal(stateOfChild(child('ConfigMap', 'a')), 'ready');
  assert.equal(stateOfChild(child('Deployment', 'a', 'Unknown')), 'waiting');
  assert.equal(stateOfChild(child('Deployment', 'a', 'True', true)), 'deleting');
});

test('what blocks stands first, in the tree and in its kind', () => {
  const found = branches([child('ConfigMap', 'a'), child('Ingress', 'x', 'False'), child('Deployment', 'b', 'False'), child('Deployment', 'a', 'False'), child('Deployment', 'c', 'True')], 'Deployment b: 0 of 1 replicas are ready');
  assert.deepEqual(found.map(({ kind, waiting }) => `${kind} ${waiting}`), ['Deployment 2', 'Ingress 1', 'ConfigMap 0']);
  assert.deepEqual(found[0]?.children.map(({ name }) => name), ['b', 'a', 'c']);
  assert.deepEqual([...(found[0]?.blocking ?? [])], ['Deployment-b']);
});
