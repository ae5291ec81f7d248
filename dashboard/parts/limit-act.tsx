import { signal } from '@preact/signals';
import { visible } from '../../src/views/visible.ts';
import { segment } from '../data/address.ts';
import { post } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { LimitsJson } from '../data/operating-documents.ts';
import type { Act } from './act.tsx';

/** Limits how often the tasks of a source or a queue start, and how many run at the same time. */
export function limiting(
  of: 'sources' | 'queues',
  { name, limits }: { readonly name: string; readonly limits: LimitsJson | null },
): Act {
  const pace = signal(limits?.per_second == null ? '' : `${limits.per_second}/s`);
  const concurrency = signal(limits?.concurrency == null ? '' : String(limits.concurrency));
  return {
    title: `Limit ${visible(name)}`,
    does: 'Limit',
    command: commandFor(of, 'limit', name),
    ...(of === 'queues' && { note: 'none' }),
    words: (
      <>
        <p>For all workers together. An empty field is no limit.</p>
        <div class="two-fields">
          <label class="field">
            Starts (such as 10/s or 5000/h)
            <input
              type="text"
              defaultValue={pace.peek()}
              autocomplete="off"
              onInput={(event) => (pace.value = event.currentTarget.value)}
            />
          </label>
          <label class="field">
            At the same time
            <input
              type="number"
              min="1"
              defaultValue={concurrency.peek()}
              onInput={(event) => (concurrency.value = event.currentTarget.value)}
            />
          </label>
        </div>
      </>
    ),
    run: async (note) => {
      const [rate, most] = [pace.value.trim(), concurrency.value.trim()];
      await post(`${of}/${segment(name)}/limit`, {
        pace: rate === '' ? null : rate,
        concurrency: most === '' ? null : Number(most),
        ...(note !== undefined && { note }),
      });
      return rate === '' && most === '' ? `${visible(name)} has no limits.` : `${visible(name)} is limited.`;
    },
  };
}
