import { SHELL_COMMAND } from '../../src/views/task-text.ts';
import { segment } from '../data/address.ts';
import { commandFor } from '../data/commands.ts';
import type { TaskJson } from '../data/documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Command } from '../parts/copy.tsx';
import { Text } from '../parts/json.tsx';
import { Section } from '../parts/page.tsx';
import { Loaded } from '../parts/states.tsx';

interface Piece {
  readonly execution: number;
  readonly stream: 'stdout' | 'stderr';
  readonly at: string;
  readonly text: string;
}

interface LogsDocument {
  readonly complete: boolean;
  readonly items: readonly Piece[];
}

/** What the command of a task printed, the newest execution first. */
export function TaskOutput({ task }: { readonly task: TaskJson }) {
  const isCommand = task.type === SHELL_COMMAND && !task.hidden;
  const shown = useDocument<LogsDocument>(isCommand ? `tasks/${segment(task.id)}/logs` : undefined);
  if (!isCommand) return null;
  return (
    <Section title="Output" aside={<Command text={commandFor('logs', task.id)} />}>
      <Loaded shown={shown}>
        {({ complete, items }) => (
          <>
            {items.length === 0 && (
              <p class="muted">
                Nothing is kept here. The output of a command is kept on the machine where it ran, for the user who ran
                it.
              </p>
            )}
            {byExecution(items).map(([execution, parts], i) => (
              <details key={execution} open={i === 0} class="stack">
                <summary>Execution {execution}</summary>
                {parts.map(({ stream, text }) => (
                  <div key={stream}>
                    <h3 class="stream">{stream}</h3>
                    <Text text={text} name={`${stream} of execution ${execution}`} isEnd />
                  </div>
                ))}
              </details>
            ))}
            {!complete && items.length > 0 && <p class="muted">Earlier output is not shown.</p>}
          </>
        )}
      </Loaded>
    </Section>
  );
}

/** The newest first, each with its streams. */
function byExecution(
  items: readonly Piece[],
): readonly (readonly [number, readonly Pick<Piece, 'stream' | 'text'>[]])[] {
  const executions = [...new Set(items.map(({ execution }) => execution))].sort((a, b) => b - a);
  return executions.map((execution) => {
    const streams = (['stderr', 'stdout'] as const).map((stream) => ({
      stream,
      text: items
        .filter((piece) => piece.execution === execution && piece.stream === stream)
        .map(({ text }) => text)
        .join(''),
    }));
    return [execution, streams.filter(({ text }) => text !== '')];
  });
}
