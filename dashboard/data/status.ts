import { computed, effect, signal } from '@preact/signals';
import { get, type Problem, problemOf } from './api.ts';
import type { MeDocument, StatusDocument } from './documents.ts';
import { changes } from './live.ts';

/** The state of the store, for the badges of every page and for the overview. */
export const status = signal<StatusDocument | undefined>(undefined);
export const me = signal<MeDocument | undefined>(undefined);
/** Why the last question for the state had no answer. */
export const trouble = signal<Problem | undefined>(undefined);

export const attentionCount = computed(() => status.value?.attention.length ?? 0);

export function followStatus(): void {
  effect(() => {
    void changes.value;
    void load();
  });
}

/** The question that was asked last: the answer to an older one is not shown. */
let asked: AbortController | undefined;

async function load(): Promise<void> {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  try {
    // Both at the same time, so that the first view waits for one answer only.
    const [who, now] = await Promise.all([me.value ?? get<MeDocument>('me'), get<StatusDocument>('status', signal)]);
    me.value ??= who;
    if (signal.aborted) return;
    status.value = now;
    trouble.value = undefined;
  } catch (error) {
    if (!signal.aborted) trouble.value = problemOf(error);
  }
}

/** Why a person may not do this, or undefined if they may. The server asks again. */
export function whyNot(permission: string): string | undefined {
  const who = me.value;
  if (who === undefined) return 'It is not known yet what you may do here.';
  if (who.read_only) return 'This dashboard is read-only.';
  return who.permissions[permission] === false ? `You have no permission for this: ${permission}.` : undefined;
}
