import { summaryOf } from '../../src/views/task-text.ts';
import { ask, segment } from '../data/address.ts';
import type { ShowDocument } from '../data/documents.ts';
import { useDocument } from '../data/use-document.ts';
import { Decision } from '../parts/decision.tsx';
import { Icon } from '../parts/icon.tsx';
import { Text } from '../parts/json.tsx';
import { Section } from '../parts/page.tsx';
import { TaskSign } from '../parts/sign.tsx';
import { Loaded } from '../parts/states.tsx';
import { TaskActs, Why } from '../parts/task-parts.tsx';
import { useKeys } from '../shell/keys.ts';

/** A task beside the list: why it is in its state, its last error, and what can be done. */
export function TaskPreview({ id, onChange }: { readonly id: number; readonly onChange: () => void }) {
  const shown = useDocument<ShowDocument>(`tasks/${segment(id)}`);
  const close = () => ask({ task: undefined }, { replace: true });
  useKeys([{ keys: 'Escape', does: 'close the preview', run: close }]);
  const again = () => {
    void shown.again();
    onChange();
  };
  return (
    <aside class="preview" aria-label={`Preview of task ${id}`}>
      <div class="preview-tools">
        <a href={`tasks/${id}`}>Open #{id}</a>
        <button type="button" class="quiet square" aria-label="Close the preview" title="Escape" onClick={close}>
          <Icon name="close" />
        </button>
      </div>
      <Loaded shown={shown}>
        {({ task, explain, history, choices }) => {
          const failure = history.findLast((entry) => entry.kind === 'execution' && entry.failure !== null);
          return (
            <>
              <h2>
                <bdi>{summaryOf(task)}</bdi> <TaskSign task={task} />
              </h2>
              <div class="actions">
                <TaskActs task={task} again={again} />
              </div>
              {explain && <Why task={task} explained={explain} />}
              {failure?.kind === 'execution' && failure.failure && (
                <Section title="Its last failure">
                  <Text text={failure.failure.message} name="error" />
                </Section>
              )}
              {task.state === 'needs_manual' && (
                <Section title="Your answer">
                  <Decision task={task} choices={choices} onDone={again} />
                </Section>
              )}
            </>
          );
        }}
      </Loaded>
    </aside>
  );
}
