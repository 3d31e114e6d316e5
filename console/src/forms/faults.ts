// What a server finds wrong with an object, by the fields that it names.
import type { Problem } from '../lib/api';
import { parsePath, type Path } from './path';

export interface Fault {
  path: Path;
  message: string;
}

/** What the API server adds where the schema refuses a field: that it has not come to its other rules. Whoever mends the field need not know. */
const NOT_CHECKED = /^some validation rules were not checked because the object was invalid/;

/** Whether the name of a new object is another's. */
export const isTaken = ({ causes, reason }: Problem): boolean => reason === 'AlreadyExists' && causes.length === 0;

/** The faults of a problem's causes. That the name of a new object is taken has no cause, and is a fault of the name. */
export function faultsOf(problem: Problem, isNew = false): Fault[] {
  if (isNew && isTaken(problem)) return [{ path: ['metadata', 'name'], message: 'is taken already' }];
  const faults = problem.causes.map(({ field, message }) => ({ path: parsePath(field), message: wordsOf(message) }));
  const others = faults.filter(({ message }) => !NOT_CHECKED.test(message));
  return others.length > 0 ? others : faults;
}

/** The words of a server's cause: what stands around them the page already shows. */
export function wordsOf(message: string): string {
  return message
    .replace(/^Invalid value: (?:"(?:[^"\\]|\\.)*"|\S+?|\{.*?\}|\[.*?\]): /s, '')
    .replace(/^Invalid value: /, '')
    .replace(/^\S+ in body /, '')
    .replace(/^Required value(?:: )?/, (all) => (all.endsWith(': ') ? '' : 'is required'))
    .replace(/^Unsupported value: (.*?): supported values: /s, 'must be one of ')
    .replace(/^Duplicate value: .*$/s, 'stands there twice')
    .replace(/^Too many: \d+: /, '')
    .replace(/^Too long: may not be (?:longer|more) than (\d+)(?: characters| bytes)?$/, 'must have at most $1 characters');
}
