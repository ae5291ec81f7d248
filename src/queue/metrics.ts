import { OTHER } from '../frequent-names.ts';
import type { Store } from '../store/store.ts';
import { TASK_STATES } from '../task.ts';
import { statsFrom } from './stats.ts';

/** How many different types, reasons, queues and sources become labels; the others are added up as `_other`. */
const MOST_LABELS = 200;

type Labels = Readonly<Record<string, string>>;

/** The state of a store in the text format of Prometheus. */
export async function metricsText(store: Store): Promise<string> {
  const { records, upkeep } = store;
  const [{ byState, retrying, byReason }, { types }, oldestReady, oldestRunning, sources, workers] = await Promise.all([
    records.counts(),
    statsFrom(records, {}, upkeep.now()),
    records.oldestReady(),
    records.oldestRunning(),
    records.sources(),
    records.workers(),
  ]);
  const now = upkeep.now();
  const text = new MetricsText();
  text.family('holdfast_tasks', 'gauge', 'Tasks by state.');
  for (const state of TASK_STATES) text.add({ state }, byState[state]);
  text.family('holdfast_tasks_retrying', 'gauge', 'Scheduled tasks that failed or were put off before.');
  text.add({}, retrying);
  text.family('holdfast_tasks_unresolved', 'gauge', 'Tasks that are dead or need a person, by reason.');
  for (const { state, reason, count } of byReason) text.add({ state, reason }, count);
  text.family(
    'holdfast_ready_oldest_age_seconds',
    'gauge',
    'How long the oldest ready task of a fifo queue has waited since it was submitted or ran last.',
  );
  for (const { queue, since } of oldestReady) text.add({ queue }, Math.max(0, now - since) / 1_000, Math.max);
  text.family('holdfast_running_oldest_age_seconds', 'gauge', 'How long the longest execution of a queue has run.');
  for (const { queue, since } of oldestRunning) text.add({ queue }, Math.max(0, now - since) / 1_000, Math.max);
  text.family('holdfast_source_held', 'gauge', 'Sources whose tasks do not start at present, and why.');
  for (const { name, hold, state } of sources) {
    const cause = hold ? 'source_held' : state?.restriction?.cause;
    if (cause !== undefined) text.add({ source: name, cause }, 1);
  }
  text.family('holdfast_workers', 'gauge', 'Workers, by whether they still have their tasks.');
  for (const alive of [true, false]) {
    text.add({ alive: String(alive) }, workers.filter(({ keepsTasks }) => keepsTasks === alive).length);
  }
  text.family('holdfast_executions_total', 'counter', 'Executions whose outcome was written.');
  for (const { type, executions, successes: success, failures: failure, uncharged } of types) {
    const { interrupted, lost } = uncharged;
    const deferral = executions - success - failure - interrupted - lost;
    for (const [outcome, count] of Object.entries({ success, failure, deferral, interrupted, lost }))
      text.add({ type, outcome }, count);
  }
  text.family('holdfast_failures_total', 'counter', 'Failed executions, by reason.');
  for (const { type, byReason } of types) {
    for (const { reason, kind, count } of byReason) text.add({ type, reason, kind }, count);
  }
  text.family('holdfast_retries_total', 'counter', 'Executions after a failure of the same task.');
  for (const { type, retries } of types) {
    text.add({ type, outcome: 'success' }, retries.successful);
    text.add({ type, outcome: 'failure' }, retries.failed);
  }
  text.family('holdfast_task_ends_total', 'counter', 'Tasks whose execution ended them.');
  for (const { type, successes, ended } of types) {
    const { dead, needsManual: needs_manual, cancelled } = ended;
    for (const [state, count] of Object.entries({ succeeded: successes, dead, needs_manual, cancelled }))
      text.add({ type, state }, count);
  }
  return text.toString();
}

/** Writes families of metrics. The values of one label are bounded: lines that become equal are added up. */
class MetricsText {
  readonly #families: string[] = [];
  readonly #names = new Map<string, Set<string>>();
  #name = '';
  #lines = new Map<string, number>();

  family(name: string, type: 'gauge' | 'counter', help: string): void {
    this.#end();
    this.#name = name;
    this.#families.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
  }

  add(labels: Labels, value: number, together = (a: number, b: number) => a + b): void {
    const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escaped(this.#bounded(label, value))}"`);
    const line = pairs.length === 0 ? this.#name : `${this.#name}{${pairs.join()}}`;
    const before = this.#lines.get(line);
    this.#lines.set(line, before === undefined ? value : together(before, value));
  }

  toString(): string {
    this.#end();
    return `${this.#families.join('\n')}\n`;
  }

  #end(): void {
    for (const [line, value] of this.#lines) this.#families.push(`${line} ${value}`);
    this.#lines = new Map();
  }

  #bounded(label: string, value: string): string {
    let names = this.#names.get(label);
    if (!names) {
      names = new Set();
      this.#names.set(label, names);
    }
    if (names.size < MOST_LABELS) names.add(value);
    return names.has(value) ? value : OTHER;
  }
}

function escaped(value: string): string {
  return value.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
