import type { Config } from '../../config/config.ts';
import { MAX_ATTEMPTS_COUNTS, type MaxAttemptsCounts, recounted } from '../../config/max-attempts-counts.ts';
import { delaysJson, delaysOf, endWords } from '../../documents/policies.ts';
import { formatDuration } from '../../duration.ts';
import type { Decision } from '../../failure/decide.ts';
import { type ForeseenRetry, scheduleOf } from '../../failure/foresee.ts';
import { isKind, isReason, type Outcome } from '../../failure/outcome.ts';
import { type Answer, definePolicy, type Policy } from '../../failure/policy.ts';
import { plural } from '../../views/plural.ts';
import { rulesOf } from '../../views/policy-text.ts';
import { quoted, visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { usage } from '../problem.ts';
import { namedPolicy } from './named-policy.ts';
import { withPolicies } from './policies-here.ts';

/** Of longer schedules only the beginning and the end are shown. */
const MOST_SHOWN = 30;

/** Every delay of a policy for failures of one reason, and what ends it. Executions count as if they took no time. */
export async function schedule(cli: Cli, name: string, reason: string | undefined): Promise<void> {
  if (reason !== undefined) refuseNoReason(reason);
  return withPolicies(cli, async (here) => {
    const { policy, kind, name: called } = await namedPolicy(here, name);
    const delays = delaysOf(policy, reason);
    const { asked, failure, retries, end, answer } = delays;
    const { terminal } = cli;
    const readings =
      kind === 'type' ? readingsOf(here.registry.config, called, asked, { kind: 'failure', failure }) : undefined;
    const found = {
      policy: called,
      kind,
      reason: reason ?? null,
      ...delaysJson(delays),
      readings: readings ?? null,
    };
    terminal.answer('policies.schedule', found, () => {
      const about = reason === undefined ? '' : `, ${visible(reason)} (${failure.kind}) by ${ruleWords(answer)}`;
      terminal.result(`${terminal.out.paint('strong', visible(called))} (${kind})${about}`);
      print(cli, asked, retries, end);
      for (const reading of readings ?? []) terminal.note(readingWords(reading));
      if (reason === undefined) for (const line of rulesBeside(cli, called, policy)) terminal.note(line);
    });
  });
}

function refuseNoReason(reason: string): void {
  if (isKind(reason) || isReason(reason.replace(/\.\*$/, ''))) return;
  throw usage(
    `--reason must be a reason such as fs.locked, a family such as fs.*, or a kind, got "${visible(reason)}"`,
  );
}

function ruleWords({ rule }: Answer): string {
  return rule === 'policy' ? 'the policy itself' : `the rule ${visible(rule)}`;
}

function print({ terminal }: Cli, policy: Policy, retries: readonly ForeseenRetry[], end: Decision | undefined): void {
  const shown = retries.length > MOST_SHOWN ? [...retries.slice(0, MOST_SHOWN - 1), ...retries.slice(-1)] : retries;
  if (shown.length > 0) {
    const rows = shown.map(({ retry, nominal, low, high, cumulative, charge }) => [
      retry,
      formatDuration(nominal),
      low === high ? '' : `${formatDuration(low)} to ${formatDuration(high)}`,
      formatDuration(cumulative),
      charge === 'task' ? '' : 'not counted',
    ]);
    terminal.table(['RETRY', 'AFTER', 'WITH JITTER', 'IN ALL', ''], rows);
    if (shown.length < retries.length) terminal.note(`The first ${MOST_SHOWN - 1} of ${retries.length}, and the last.`);
  }
  if (policy.adaptive) {
    terminal.note('These are the delays without observations. Adaptive retries may begin with a longer one of them.');
  }
  const giveUp =
    policy.giveUpAfter === 'none'
      ? ''
      : ` It gives up ${formatDuration(policy.giveUpAfter)} after its first start in any case.`;
  terminal.result(
    end
      ? `then ${end.next}: ${visible(endWords(end))}${giveUp}`
      : `then further, beyond ${retries.length} retries.${giveUp}`,
  );
}

function rulesBeside(cli: Cli, name: string, policy: Policy): string[] {
  return rulesOf(policy).map(({ name: rule, words, answer }) => {
    return `rule ${visible(rule)}: ${words}, then ${answer.onExhausted}; ${cli.command(`policies schedule ${quoted(name)} --reason ${quoted(rule)}`)}`;
  });
}

/** One way to read `max_attempts` of a document, and what follows from it. */
interface Reading {
  readonly counts: MaxAttemptsCounts;
  readonly in_use: boolean;
  readonly executions: number;
  readonly total_ms: number;
}

/** Both ways to read the `max_attempts` of a connector; undefined for a policy that is not from such a document. */
function readingsOf(
  config: Config | undefined,
  name: string,
  policy: Policy,
  outcome: Outcome,
): readonly Reading[] | undefined {
  const { connectors } = config ?? {};
  if (!connectors?.names.has(name)) return undefined;
  return MAX_ATTEMPTS_COUNTS.map((counts) => {
    const by = counts === connectors.counts ? 0 : counts === 'retries' ? 1 : -1;
    const { retries } = scheduleOf(by === 0 ? policy : definePolicy(recounted(policy, by)), outcome);
    const total_ms = retries.at(-1)?.cumulative ?? 0;
    return { counts, in_use: by === 0, executions: retries.length + 1, total_ms };
  });
}

function readingWords({ counts, in_use, executions, total_ms }: Reading): string {
  const use = in_use ? ' (in use)' : '';
  return `max_attempts as ${counts}${use}: ${plural(executions, 'execution', 'executions')}, ${formatDuration(total_ms)} in all`;
}
