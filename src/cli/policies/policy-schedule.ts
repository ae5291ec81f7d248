import { formatDuration } from '../../duration.ts';
import type { Decision } from '../../failure/decide.ts';
import { type ForeseenRetry, failureOf, scheduleOf } from '../../failure/foresee.ts';
import { isKind, isReason } from '../../failure/outcome.ts';
import { type Answer, answerFor, definePolicy, type Policy } from '../../failure/policy.ts';
import { policyWords } from '../../views/task-text.ts';
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
    // Without a reason it shows the policy itself, without its rules.
    const asked = reason === undefined ? definePolicy({ ...policy, rules: {} }) : policy;
    const failure = failureOf(reason ?? 'unknown', {
      ambiguous: false,
      ...(reason === undefined && { kind: 'transient' }),
    });
    const { retries, end } = scheduleOf(asked, { kind: 'failure', failure });
    const answer = answerFor(asked, failure.reason, failure.kind);
    const { terminal } = cli;
    const found = { policy: called, kind, reason: reason ?? null, ...scheduleJson(answer, retries, end) };
    terminal.answer('policies.schedule', found, () => {
      const about = reason === undefined ? '' : `, ${visible(reason)} (${failure.kind}) by ${ruleWords(answer)}`;
      terminal.result(`${terminal.out.paint('strong', visible(called))} (${kind})${about}`);
      print(cli, asked, retries, end);
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

/** Without the reason `unknown`, which stands for any reason here. */
function endWords({ because }: Decision): string {
  return because.text.replace(/^unknown: /, '');
}

function rulesBeside(cli: Cli, name: string, { rules, ...rest }: Policy): string[] {
  return Object.keys(rules).map((rule) => {
    const answer = answerFor({ ...rest, rules }, rule.replace(/\*$/, 'any'), isKind(rule) ? rule : undefined);
    const words = policyWords({ ...rest, rules, ...answer });
    return `rule ${visible(rule)}: ${words}, then ${answer.onExhausted}; ${cli.command(`policies schedule ${quoted(name)} --reason ${quoted(rule)}`)}`;
  });
}

function scheduleJson(
  { rule, maxAttempts }: Answer,
  retries: readonly ForeseenRetry[],
  end: Decision | undefined,
): object {
  return {
    rule,
    max_attempts: maxAttempts,
    // biome-ignore lint/suspicious/noThenProperty: a word of the contract, in what is only printed
    then: end?.next ?? null,
    because: end ? endWords(end) : null,
    delays: retries.map(({ retry, nominal, low, high, cumulative, charge }) => ({
      retry,
      delay_ms: nominal,
      min_ms: low,
      max_ms: high,
      cumulative_ms: cumulative,
      charge,
    })),
  };
}
