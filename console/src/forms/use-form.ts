// The state of a form: the object as it is typed, what the server finds wrong with it, and what of that somebody should see by now.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Problem, ProblemError } from '../lib/api';
import type { JsonSchema } from '../lib/kubernetes';
import { type Fault, faultsOf, isTaken } from './faults';
import { type FieldNode, fieldsOf, hasPlace, shownFields, type Thing } from './model';
import { get, isEqual, isSame, isWithin, parsePath, type Path, pathText, set, unset } from './path';

/** What stands in the form of every new object. */
const NAMES: readonly Path[] = [['metadata', 'name'], ['metadata', 'namespace']];

/** How long after the last field was left the server is asked. */
const SETTLES = 350;

export interface FormOptions {
  schema: JsonSchema;
  initial: Thing;
  isNew: boolean;
  namespaced: boolean;
  /** What the server finds wrong, without anything being written. */
  dryRun: (thing: Thing, signal: AbortSignal) => Promise<Fault[]>;
  save: (thing: Thing) => Promise<void>;
}

/** What a field knows of the form that it is in. */
export interface FieldForm {
  at: (path: Path) => unknown;
  set: (path: Path, value: unknown) => void;
  blur: (path: Path) => void;
  /** What to show as wrong at a field; with `inside`, what is wrong in it too. */
  error: (path: Path, inside?: boolean) => string | undefined;
  faultsIn: (path: Path) => Fault[];
  /** A text that cannot be read as a value at all; undefined once it can. */
  unreadable: (path: Path, message: string | undefined) => void;
}

export interface Form extends FieldForm {
  /** The object as it would be saved. */
  thing: Thing;
  fields: FieldNode[];
  isDirty: boolean;
  isSaving: boolean;
  /** Whether a field of the form says what is wrong at a path. */
  hasPlace: (path: Path) => boolean;
  /** What belongs to no field that is shown. */
  head: Fault[];
  problem: Problem | null;
  /** Takes the whole object, as it was typed as YAML. */
  replace: (thing: Thing) => void;
  /** Everything that is wrong, whether it is shown yet or not. */
  faults: Fault[];
  /** How much of it is in the way, after an attempt to save. */
  wrong: number;
  submit: () => Promise<boolean>;
}

function without(faults: readonly Fault[], path: Path): Fault[] {
  return faults.filter((fault) => !isWithin(fault.path, path) && !isWithin(path, fault.path));
}

export function useForm(options: FormOptions): Form {
  const { schema, initial, isNew, dryRun, save } = options;
  const [thing, setTyped] = useState(initial);
  const [touched, setTouched] = useState<ReadonlySet<string>>(new Set());
  const [isSubmitted, setSubmitted] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const [told, setTold] = useState<Fault[]>([]);
  const [broken, setBroken] = useState<Fault[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);

  const all = useMemo(() => fieldsOf(schema), [schema]);
  const fields = useMemo(() => shownFields(all, thing), [all, thing]);
  const faults = useMemo(() => [...broken, ...told], [broken, told]);

  const latest = useRef({ thing, broken });
  latest.current = { thing, broken };
  const asked = useRef<{ timer?: ReturnType<typeof setTimeout>; abort?: AbortController; about?: Thing }>({});
  const stop = () => {
    clearTimeout(asked.current.timer);
    if (!asked.current.abort) return;
    asked.current.abort.abort();
    // Nobody gets this answer, so the same is to be asked again.
    asked.current = {};
  };
  useEffect(() => stop, []);

  const isSeen = (path: Path): boolean => isSubmitted || [...touched].some((seen) => isWithin(path, parsePath(seen)));
  const isShown = (path: Path): boolean => (isNew && NAMES.some((name) => isWithin(path, name))) || hasPlace(fields, path, thing);

  const askServer = () => {
    stop();
    asked.current.timer = setTimeout(() => {
      const { thing } = latest.current;
      // Going through the fields without a change asks nothing.
      if (isEqual(thing, asked.current.about ?? initial)) return;
      asked.current.about = thing;
      const abort = new AbortController();
      asked.current.abort = abort;
      void dryRun(thing, abort.signal).then((faults) => {
        if (abort.signal.aborted) return;
        delete asked.current.abort;
        // What was typed meanwhile may have been left before it was drawn.
        if (isEqual(latest.current.thing, thing)) setTold(faults);
        else askServer();
      }, () => {
        if (!abort.signal.aborted) asked.current = {};
      });
    }, SETTLES);
  };
  const submit = async (): Promise<boolean> => {
    stop();
    setSubmitted(true);
    setProblem(null);
    const { thing, broken } = latest.current;
    if (broken.length > 0) return false;
    // What the server said before may hold no longer: it is asked again.
    setTold([]);
    setSaving(true);
    try {
      await save(thing);
      return true;
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      setTold(faultsOf(error.problem, isNew));
      setProblem(isNew && isTaken(error.problem) ? null : error.problem);
      return false;
    } finally {
      setSaving(false);
    }
  };

  return {
    thing, fields, isSaving, problem, faults, submit, hasPlace: isShown,
    wrong: isSubmitted ? faults.length : 0,
    isDirty: !isEqual(thing, initial),
    // What is about the whole object has no field that somebody could have been at before.
    head: [...(isSubmitted ? broken : []), ...told.filter(({ path }) => isSubmitted || path.length < 2)].filter(({ path }) => !isShown(path)),
    at: (path) => get(thing, path),
    set: (path, value) => {
      delete asked.current.about;
      setTyped((before) => (value === undefined || value === '' || (Array.isArray(value) && value.length === 0) ? unset(before, path) : set(before, path, value)) as Thing);
      setTold((before) => without(before, path));
      setProblem(null);
    },
    replace: (next) => {
      delete asked.current.about;
      setTyped(next);
      setTold([]);
      setProblem(null);
    },
    blur: (path) => {
      setTouched((before) => (before.has(pathText(path)) ? before : new Set([...before, pathText(path)])));
      askServer();
    },
    error: (path, inside) => {
      const found = faults.find((fault) => (inside ? isWithin(fault.path, path) : isSame(fault.path, path)) && isSeen(fault.path));
      if (!found) return undefined;
      const item = found.path[path.length];
      return typeof item === 'number' ? `${String(get(thing, found.path) ?? `entry ${item + 1}`)} ${found.message}` : found.message;
    },
    faultsIn: (path) => faults.filter((fault) => isWithin(fault.path, path) && isSeen(fault.path)),
    unreadable: (path, message) => setBroken((before) => {
      const others = before.filter((fault) => !isSame(fault.path, path));
      return message === undefined ? (others.length === before.length ? before : others) : [...others, { path, message }];
    }),
  };
}
