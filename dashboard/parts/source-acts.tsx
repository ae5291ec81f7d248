import { signal } from '@preact/signals';
import type { SourceJson } from '../data/operating-documents.ts';
import { actOnSource, holdSource, NO_END, verbsOfSource } from '../data/source-acts.ts';
import { type Act, ActButton } from './act.tsx';
import { HowLong } from './how-long.tsx';
import { limiting } from './limit-act.tsx';

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
      {withLimit && <ActButton verb="sources" style="quiet" act={limiting('sources', source)} />}
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
