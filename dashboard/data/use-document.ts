import { useEffect, useRef, useState } from 'preact/hooks';
import { get, type Problem, problemOf } from './api.ts';
import { changes, ownActs } from './live.ts';

export interface Shown<Document> {
  /** The last answer, also while the next one is awaited. */
  readonly document?: Document;
  /** Why the last question has no answer. */
  readonly problem?: Problem;
  /** Whether the answer is of another question than the present one. */
  readonly isOld: boolean;
  /** Whether a newer answer waits until the reader leaves the list. */
  readonly hasNewer: boolean;
  showNewer(): void;
  /** Asks again. */
  again(): Promise<void>;
}

interface Known<Document> {
  readonly path?: string;
  readonly document?: Document;
  readonly problem?: Problem;
}

/**
 * A document of the API that is kept up to date. While `isFrozen` says that somebody uses what is shown (a pointer or the keyboard is
 * in a list), a newer answer waits: no row moves under a finger. `atMostEvery`: milliseconds, for what costs the store much.
 */
export function useDocument<Document>(
  path: string | undefined,
  isFrozen: () => boolean = never,
  atMostEvery = 0,
): Shown<Document> {
  const [known, setKnown] = useState<Known<Document>>({});
  const [newer, setNewer] = useState<Document>();
  const asked = useRef<AbortController>(undefined);
  /** An answer was asked for that is shown in any case, also if another question overtakes it. */
  const isForced = useRef(false);
  /** What is awaited now. */
  const awaited = useRef<string>(undefined);
  /** Something changed while an answer was awaited, so it is asked for again after it. */
  const isOvertaken = useRef(false);
  const askedAt = useRef(0);
  const before = useRef<string>(undefined);
  const version = changes.value;
  const acts = ownActs.value;
  const actsBefore = useRef(acts);

  const load = async (force: boolean): Promise<void> => {
    if (path === undefined) return;
    // A store that is away answers late, with its problem. Asking again and again would never show it.
    if (!force && awaited.current === path) {
      isOvertaken.current = true;
      return;
    }
    asked.current?.abort();
    if (force) isForced.current = true;
    awaited.current = path;
    isOvertaken.current = false;
    const controller = new AbortController();
    asked.current = controller;
    try {
      const document = await get<Document>(path, controller.signal);
      if (controller.signal.aborted) return;
      if (!isForced.current && isFrozen()) setNewer(() => document);
      else {
        isForced.current = false;
        setNewer(undefined);
        setKnown({ path, document });
      }
    } catch (error) {
      if (controller.signal.aborted) return;
      const problem = problemOf(error);
      // What was shown stays readable while the server is away.
      setKnown((last) => ({ path, ...(last.path === path && last.document && { document: last.document }), problem }));
    }
    awaited.current = undefined;
    if (isOvertaken.current) await load(false);
  };

  useEffect(() => {
    const isNew = before.current !== path;
    const hasActed = actsBefore.current !== acts;
    actsBefore.current = acts;
    if (!isNew && !hasActed && performance.now() - askedAt.current < atMostEvery) return;
    askedAt.current = performance.now();
    before.current = path;
    if (isNew) setNewer(undefined);
    void load(isNew || hasActed);
  }, [path, version, acts]);
  useEffect(() => () => asked.current?.abort(), []);

  return {
    ...(known.document !== undefined && { document: known.document }),
    ...(known.problem && { problem: known.problem }),
    isOld: known.path !== path,
    hasNewer: newer !== undefined,
    showNewer() {
      if (newer === undefined || path === undefined) return;
      setKnown({ path, document: newer });
      setNewer(undefined);
    },
    again: () => load(true),
  };
}

function never(): boolean {
  return false;
}
