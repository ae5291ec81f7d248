import type { Command } from 'commander';
import { statsContent } from '../../documents/stats.ts';
import { FAILURE_KINDS } from '../../failure/outcome.ts';
import { isFilter } from '../../filter.ts';
import type { Stats, StatsReport } from '../../queue/stats.ts';
import { clockTime } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { filterFrom } from '../flags/filter.ts';
import { parsePastMoment } from '../flags/moment.ts';
import { withStore } from '../opening/open-store.ts';
import { usage } from '../problem.ts';
import type { Column } from '../terminal/table.ts';

interface Flags {
  readonly type?: string;
  readonly source?: string;
  readonly since?: string;
  readonly bin?: string;
  readonly json?: true | string;
}

/** How many sources and reasons a person is shown. */
const MOST_SHOWN = 20;

const RETRY_METRICS = 'retry_metrics';

export function declare(command: Command): void {
  command
    .argument('[filter...]')
    .option('--type <type>', 'only tasks of this type')
    .option('--source <name>', 'only tasks of this source; _other: of those that are not among the busiest')
    .option('--since <time>', 'only what was settled since then: 24h (so long ago), 14:30, 2026-01-31')
    .option('--bin <time>', 'with --json: also the counts of each span of time, such as 5m')
    .option('--json [shape]', `one JSON document on stdout; --json=${RETRY_METRICS}: only the retries, by type`)
    .addHelpText(
      'after',
      `
Each outcome is counted in the transaction that writes it, so the numbers are exact. They stay when tasks are removed: by the minute
for two hours, by the hour for 14 days, then by the day.
A filter: type:sync -source:imap:* reason:http.* since:24h. With a reason, only the failures with it are counted.

  RETRIES   executions after a failure of the task; RETRIES OK: those that succeeded
  ATTEMPTS  how many attempts a success took on average
  WASTED    executions of tasks that in the end were dead or needed a person
  BUDGET    how many of the attempts that their policies allow ended tasks used`,
    );
  act<Flags>(command, stats);
}

async function stats(cli: Cli, args: readonly string[], { type, source, since, bin, json }: Flags): Promise<void> {
  // In `--json type:sync`, the term is no value of the flag.
  const swallowed = typeof json === 'string' && isFilter(json);
  const terms = swallowed ? [json, ...args] : args;
  if (!swallowed && typeof json === 'string' && json !== RETRY_METRICS) {
    throw usage(`--json takes ${RETRY_METRICS} or nothing, got "${visible(json)}"`);
  }
  return withStore(cli, {}, async (holdfast) => {
    const now = holdfast.now();
    const report = await holdfast.stats({
      filter: filterFrom(terms),
      ...(type !== undefined && { type }),
      ...(source !== undefined && { source }),
      ...(since !== undefined && { since: parsePastMoment(since, new Date(now), '--since') }),
      ...(bin !== undefined && { bin }),
    });
    if (json === RETRY_METRICS) return cli.terminal.document(retryMetrics(report));
    cli.terminal.answer('stats', statsContent(report), () => print(cli, report, now));
  });
}

/** The retries of each type, in the form that the metrics of connectors have elsewhere. */
function retryMetrics({ types }: StatsReport): object {
  const entries = types.map(({ type, retries, averageAttemptsUntilSuccess }) => [
    type,
    {
      total_retries: retries.total,
      successful_retries: retries.successful,
      failed_retries: retries.failed,
      avg_attempts_until_success: rounded(averageAttemptsUntilSuccess),
      by_failure_type: retries.byFailureKind,
    },
  ]);
  return { [RETRY_METRICS]: Object.fromEntries(entries) };
}

function rounded(value: number | null): number | null {
  return value === null ? null : Math.round(value * 100) / 100;
}

function print(cli: Cli, { since, total, types, sources }: StatsReport, now: number): void {
  const { terminal } = cli;
  if (!since) {
    terminal.note('Nothing was counted yet. Executions are counted when their outcome is written.');
    return;
  }
  terminal.result(`Counted since ${clockTime(since.getTime(), now)}`);
  terminal.result('');
  const rows = types.map((each) => row(each.type, each));
  terminal.table(columnsOf('TYPE'), types.length > 1 ? [...rows, row('all', total)] : rows);
  if (sources.length > 1) {
    terminal.result('');
    terminal.table(
      columnsOf('SOURCE'),
      sources.slice(0, MOST_SHOWN).map((each) => row(each.source, each)),
    );
  }
  if (total.failures > 0) {
    terminal.result('');
    terminal.table(
      ['FAILURES', 'KIND', ['REASON', 12]],
      total.byReason.slice(0, MOST_SHOWN).map(({ reason, kind, count }) => [count, kind, visible(reason)]),
    );
  }
  if (total.byAttempt.length > 1) {
    terminal.result('');
    terminal.table(
      ['ATTEMPT', 'SUCCEEDED', 'FAILED', 'RATE'],
      total.byAttempt.map(({ attempt, successes, failures }) => [
        attempt,
        successes,
        failures,
        percent(successes, successes + failures),
      ]),
    );
  }
  const after = FAILURE_KINDS.filter((kind) => total.retries.byFailureKind[kind] > 0);
  if (after.length > 0) {
    terminal.result('');
    const words = after.map((kind) => `${kind} ${total.retries.byFailureKind[kind]}`).join(', ');
    terminal.result(`Retries by the failure before: ${words}`);
  }
}

function columnsOf(first: string): Column[] {
  return [
    [first, 12],
    'EXECUTIONS',
    'SUCCEEDED',
    'FAILED',
    'RATE',
    'RETRIES',
    ['RETRIES OK', 0],
    ['ATTEMPTS', 0],
    'DEAD',
    'MANUAL',
    ['WASTED', 0],
    ['BUDGET', 0],
  ];
}

function row(name: string, stats: Stats): (string | number)[] {
  const { executions, successes, failures, retries, averageAttemptsUntilSuccess: attempts, ended, budget } = stats;
  return [
    visible(name),
    executions,
    successes,
    failures,
    percent(successes, successes + failures),
    retries.total,
    percent(retries.successful, retries.total),
    attempts === null ? '' : attempts.toFixed(1),
    ended.dead,
    ended.needsManual,
    stats.wastedExecutions,
    percent(budget.used, budget.allowed),
  ];
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '' : `${Math.round((100 * part) / whole)} %`;
}
