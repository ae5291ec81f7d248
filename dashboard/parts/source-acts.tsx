import { signal } from '@preact/signals';
import { visible } from '../../src/views/visible.ts';
import { segment } from '../data/address.ts';
import { post } from '../data/api.ts';
import { commandFor } from '../data/commands.ts';
import type { SourceJson } from '../data/operating-documents.ts';
import { actOnSource, holdSource, NO_END, verbsOfSource } from '../data/source-acts.ts';
import { type Act, ActButton } from './act.tsx';
import { HowLong } from './how-long.tsx';

/** What a person can do with a source. */
export function SourceActs({
  source,
  withLimit = false,
  most = 3,
}: {
  readonly source: SourceJson;
  readonly withLimit?: boolean;
  /** At most so many, the most useful first. */
  readonly most?: number;
}) {
  return (
    <div class="row-acts">
      {verbsOfSource(source)
        .slice(0, most)
        .map((verb) => (
          <ActButton
            key={verb}
            verb="sources"
            style="quiet"
            act={verb === 'hold' ? holding(source) : actOnSource(verb, source)}
          />
        ))}
      {withLimit && <ActButton verb="sources" style="quiet" act={limiting(source)} />}
    </div>
  );
}

function holding(source: SourceJson): Act {
  const end = signal<string>(NO_END);
  return {
    ...holdSource(source, () => end.value),
    words: (
      <>
        <p>None of its tasks starts until then. Running tasks go on, and no attempt is charged.</p>
        <HowLong onChoice={(lasts) => (end.value = lasts)} />
      </>
    ),
  };
}

function limiting({ name, limits }: SourceJson): Act {
  const pace = signal(limits?.per_second == null ? '' : `${limits.per_second}/s`);
  const concurrency = signal(limits?.concurrency == null ? '' : String(limits.concurrency));
  return {
    title: `Limit ${visible(name)}`,
    does: 'Limit',
    command: commandFor('sources', 'limit', name),
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
      await post(`sources/${segment(name)}/limit`, {
        pace: rate === '' ? null : rate,
        concurrency: most === '' ? null : Number(most),
        ...(note !== undefined && { note }),
      });
      return rate === '' && most === '' ? `${visible(name)} has no limits.` : `${visible(name)} is limited.`;
    },
  };
}
