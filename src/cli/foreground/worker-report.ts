import type { Config } from '../../config/config.ts';
import { formatDuration } from '../../duration.ts';
import type { InvalidConfigError } from '../../errors.ts';
import { readStored } from '../../stored-json.ts';
import { type ShownState, stateWords } from '../../views/glyphs.ts';
import { becauseJson, failureJson } from '../../views/json-shapes.ts';
import { endOf, OWN_TYPES, OWN_TYPES_TEXT, progressWords, summaryOf } from '../../views/task-text.ts';
import { clockTime } from '../../views/times.ts';
import { visible } from '../../views/visible.ts';
import type { WorkerEvent } from '../../worker/worker.ts';
import { configProblemJson, configProblemLine } from '../problem.ts';
import type { Terminal } from '../terminal/terminal.ts';

type Settled = Extract<WorkerEvent, { kind: 'settled' }>;

/** Reports what a worker does: plain lines on a terminal, otherwise JSON lines. */
export class WorkerReport {
  readonly #terminal: Terminal;
  readonly #worker: string;
  readonly #lines: boolean;

  constructor(terminal: Terminal, worker: string) {
    this.#terminal = terminal;
    this.#worker = worker;
    this.#lines = terminal.out.isTerminal && !terminal.json;
  }

  up(store: string): void {
    const fields = { store, pid: process.pid, types: OWN_TYPES };
    this.#tell(
      'up',
      fields,
      () => `${this.#glyph('running')} ${visible(this.#worker)} works ${OWN_TYPES_TEXT} from ${visible(store)}`,
    );
  }

  metricsAt(url: string): void {
    this.#tell('metrics', { url }, () => `${this.#glyph('running')} metrics for Prometheus: ${url}`);
  }

  stopping(signal: string, graceMs: number): void {
    const how =
      graceMs === 0 ? 'at once' : `running tasks have ${formatDuration(graceMs)}; a second signal stops them at once`;
    // Ends the line on which the terminal has shown `^C`.
    if (this.#lines && signal === 'SIGINT') this.#terminal.out.raw('\n');
    const words = () => `${this.#glyph('held')} ${signal}: stopping, ${how}`;
    this.#tell('stopping', { signal, grace_ms: graceMs }, words);
  }

  ended(): void {
    this.#tell('ended', {}, () => `${this.#glyph('succeeded')} ${visible(this.#worker)} has ended`);
  }

  trouble(level: 'warn' | 'error', message: string, thrown: unknown): void {
    const error = thrown instanceof Error ? thrown.message : null;
    const words = () => `${this.#glyph('dead')} ${visible(error === null ? message : `${message}: ${error}`)}`;
    this.#tell('trouble', { level, message, error }, words);
  }

  /** Reports that a configuration is now in use. Undefined if the worker was asked to read one and there is none. */
  configured(config: Pick<Config, 'file' | 'version' | 'warnings'> | undefined): void {
    const { file = null, version = null, warnings = [] } = config ?? {};
    this.#tell('config', { file, version, warnings: warnings.map(configProblemJson) }, () =>
      file === null
        ? `${this.#glyph('held')} SIGHUP: no configuration was there when it started, so there is none to read again`
        : [
            `${this.#glyph('succeeded')} policies of ${visible(file)} (${version}) are in force`,
            ...warnings.map((one) => configProblemLine(file, one)),
          ].join('\n  '),
    );
  }

  /** Reports a refused configuration with all its errors. The one before stays in use. */
  configRefused({ file, problems }: InvalidConfigError): void {
    const lines = problems.map((problem) => configProblemLine(file, problem));
    this.#tell('config_refused', { file, problems: problems.map(configProblemJson) }, () =>
      [`${this.#glyph('dead')} ${visible(file)} is invalid; the last valid one stays in use`, ...lines].join('\n  '),
    );
  }

  event(event: WorkerEvent): void {
    const more =
      event.kind === 'progress' ? { progress: event.progress } : event.kind === 'settled' && settledJson(event);
    const fields = { ...whose(event), ...more };
    this.#tell(event.kind, fields, () => this.#words(event));
  }

  #words(event: WorkerEvent): string {
    const { lease, type, payload } = event.task;
    const task = `#${lease.task}`;
    switch (event.kind) {
      case 'started':
        return `${this.#glyph('running')} ${task} ${summaryOf({ type, input: readStored(payload, 'payload', [], null) })}`;
      case 'progress':
        return `${this.#glyph('running')} ${task} ${progressWords(event.progress)}`;
      case 'stale':
        return `${this.#glyph('cancelled')} ${task} its lease had ended, so its outcome changed nothing`;
      case 'settled':
        return this.#settledWords(task, event);
    }
  }

  #settledWords(task: string, { decision, outcome, ranFor, state }: Settled): string {
    const took = formatDuration(ranFor);
    if (decision.next === 'succeeded') return `${this.#glyph('succeeded')} ${task} succeeded  ${took}`;
    const failure = outcome.kind === 'failure' ? outcome.failure : undefined;
    const { how, said } = endOf(failure ? { failure } : {});
    const parts = [took, how, visible(decision.reason), said === '' ? '' : `"${said}"`].filter((part) => part !== '');
    return `${this.#glyph(failure ? 'dead' : 'cancelled')} ${task} ${parts.join('  ')}  ${this.#next(decision, state)}`;
  }

  #next(decision: Settled['decision'], state: Settled['state']): string {
    if (decision.next !== 'scheduled') return `${this.#glyph(state)} ${stateWords(state)}`;
    const when = decision.after > 0 ? `in ${formatDuration(decision.after)}` : 'at once';
    return `${this.#glyph('retrying')} next attempt ${when}`;
  }

  #tell(event: string, fields: object, words: () => string): void {
    const now = Date.now();
    if (this.#lines) {
      this.#terminal.result(`${this.#terminal.out.paint('idle', clockTime(now, now))} ${words()}`);
      return;
    }
    const at = new Date(now).toISOString();
    this.#terminal.document({ schema: 'holdfast.worker/v1', at, event, worker: this.#worker, ...fields });
  }

  #glyph(state: ShownState): string {
    return this.#terminal.out.glyph(state);
  }
}

function whose({ task }: WorkerEvent): object {
  const { lease, type, queue, source, key } = task;
  return { task: lease.task, execution: lease.execution, type, queue, source, key: key ?? null };
}

function settledJson({ decision, outcome, state, ranFor }: Settled): object {
  return {
    outcome: outcome.kind,
    state,
    reason: decision.next === 'succeeded' ? null : decision.reason,
    ran_for_ms: Math.round(ranFor),
    next_in_ms: decision.next === 'scheduled' ? decision.after : null,
    failure: outcome.kind === 'failure' ? failureJson(outcome.failure) : null,
    because: becauseJson(decision.because),
  };
}
