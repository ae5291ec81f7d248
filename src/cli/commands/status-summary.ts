import { REASONS } from '../../failure/classify/reasons.ts';
import type { Counts } from '../../store/store.ts';
import { TASK_STATES, type TaskState } from '../../task.ts';
import { adviceFor } from '../../views/advice.ts';
import { stateWords } from '../../views/glyphs.ts';
import { documentOf } from '../../views/json-shapes.ts';
import { plural } from '../../views/plural.ts';
import { rfc3339, until } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';

/** The tasks that need a person for one reason, and what that person can do. */
interface Action {
  readonly reason: string;
  readonly count: number;
  readonly advice: string;
  readonly command: string;
}

/** The states as people count them: what goes on first, then what is over. */
const ORDER: readonly TaskState[] = [
  'running',
  'ready',
  'scheduled',
  'held',
  'succeeded',
  'cancelled',
  'dead',
  'needs_manual',
];

/** Totals by state, what the next run may take, and what needs a person, by reason and with what to do. */
export function printSummary(cli: Cli, store: string, counts: Counts, heldBack: readonly string[], now: number): void {
  const { terminal } = cli;
  const actions = actionsIn(cli, counts);
  const { byState, retrying, due, nextDueAt } = counts;
  const total = TASK_STATES.reduce((sum, state) => sum + byState[state], 0);
  if (terminal.json) {
    terminal.document(
      documentOf('status.summary', {
        store,
        total,
        by_state: byState,
        retrying,
        eligible: due,
        next_due_at: rfc3339(nextDueAt),
        held_back: heldBack,
        action_required: actions,
      }),
    );
    return;
  }
  const { out } = terminal;
  const line = (words: string, count: number, more = '') =>
    terminal.result(`${words.padEnd(WIDTH)}${String(count).padStart(8)}${more === '' ? '' : `   ${more}`}`);
  line('Tasks', total);
  for (const state of ORDER) {
    if (byState[state] === 0) continue;
    const more = state === 'scheduled' && retrying > 0 ? `${retrying} of them retrying` : '';
    line(`  ${stateWords(state)}`, byState[state], more);
  }
  const next = nextDueAt !== undefined && nextDueAt > now ? `the next one ${until(nextDueAt, now)}` : '';
  line('Eligible for the next run', due, next);
  for (const text of heldBack) terminal.result(`  ${text}`);
  if (actions.length === 0) return;
  const needing = actions.reduce((sum, { count }) => sum + count, 0);
  terminal.result('');
  terminal.result(out.paint('human', `ACTION REQUIRED: ${plural(needing, 'task needs', 'tasks need')} a person`));
  for (const { reason, count, advice, command } of actions) {
    terminal.result(`  ${count} ${visible(reason)}: ${advice}`);
    terminal.result(`      ${out.paint('idle', command)}`);
  }
  terminal.result(`  Then answer each: ${cli.command('resolve ID --as succeeded|retry|dead')}`);
}

const WIDTH = 28;

function actionsIn(cli: Cli, { byReason }: Counts): readonly Action[] {
  return byReason
    .filter(({ state }) => state === 'needs_manual')
    .map(({ reason, count }) => ({
      reason,
      count,
      advice: whatToDo(reason),
      command: cli.command(`inbox reason:${visible(reason)}`),
    }));
}

/** What a person can do about a reason. Without advice for it: what it means; for a reason of the application: where to look. */
function whatToDo(reason: string): string {
  const advice = adviceFor(reason);
  if (advice !== undefined) return advice;
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason as keyof typeof REASONS] : undefined;
  return known?.meaning ?? 'The application gave this reason. Look at the messages of the tasks.';
}
