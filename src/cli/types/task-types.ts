import { dirname, isAbsolute } from 'node:path';
import { InvalidInputError } from '../../errors.ts';
import { presets } from '../../failure/presets.ts';
import {
  type CommandInput,
  type CommandOptions,
  type CommandTask,
  checkCommand,
  command,
  endLostCommand,
} from '../../handlers/command.ts';
import { type HttpOptions, http } from '../../handlers/http.ts';
import { checkHttp, type HttpInput, mayBeRepeated, sourceOfHttp } from '../../handlers/http-input.ts';
import { type MoveInput, move } from '../../handlers/move.ts';
import { show } from '../../show.ts';
import { FILE_MOVE, HTTP_DELIVERY, SHELL_COMMAND } from '../../views/task-text.ts';
import { type AnyTask, defineTask, type RunningTask } from '../../worker/define-task.ts';
import type { HandlerStopper } from '../foreground/handler-stopper.ts';
import type { OutputLog } from '../output/output-log.ts';
import { sourceOfCommand, sourceOfMove } from './default-source.ts';

export interface TaskTypeOptions {
  readonly environment: CommandOptions['environment'];
  readonly stopper: HandlerStopper;
  /** Shows the output of commands while they run. Without it, the end of the output is kept in the task's result. */
  readonly write?: NonNullable<CommandOptions['write']>;
  /** Receives the whole body of a successful response. Without it, the beginning is kept in the task's result. */
  readonly answer?: NonNullable<HttpOptions['answer']>;
  /** Keeps the output for `holdfast logs`. */
  readonly output: OutputLog;
}

/** The task types of the command line: `shell_command`, `file_move` and `http_delivery`. */
export function taskTypes({ environment, stopper, write, answer, output }: TaskTypeOptions): readonly AnyTask[] {
  const keep = (task: CommandTask) => output.keeper(task);
  const runCommand = command({ environment, kill: stopper.kill, keep, ...(write && { write }) });
  const sendRequest = http({ environment, ...(answer && { answer }) });
  return [
    defineTask<CommandInput>(SHELL_COMMAND, {
      retry: presets.shellCommand,
      input: schemaOf(checkCommand),
      run: (input, task) => stopper.run(task, (guarded) => runCommand(input, guarded)),
      cleanUp: endLostCommand,
    }),
    defineTask<MoveInput>(FILE_MOVE, {
      retry: presets.fileMove,
      input: schemaOf(checkMove),
      run: (input, task: RunningTask) => stopper.run(task, (guarded) => move(input, guarded)),
    }),
    defineTask<HttpInput>(HTTP_DELIVERY, {
      retry: presets.httpDelivery,
      source: sourceOfHttp,
      idempotent: mayBeRepeated,
      input: schemaOf(checkHttp),
      run: (input, task: RunningTask) => stopper.run(task, (guarded) => sendRequest(input, guarded)),
    }),
  ];
}

/** The same types, for a command that only records tasks. */
export function recordedTypes(): readonly AnyTask[] {
  return [
    defineTask<CommandInput>(SHELL_COMMAND, { input: schemaOf(checkCommand), source: sourceOfCommand, run: notHere }),
    defineTask<MoveInput>(FILE_MOVE, { input: schemaOf(checkAbsoluteMove), source: sourceByFolder(), run: notHere }),
    defineTask<HttpInput>(HTTP_DELIVERY, {
      input: schemaOf(checkHttp),
      source: sourceOfHttp,
      idempotent: mayBeRepeated,
      run: notHere,
    }),
  ];
}

function notHere(): never {
  throw new Error('This command works no tasks.');
}

/** As `sourceOfMove`, but looks at the file system only once for each folder. */
function sourceByFolder(): (input: MoveInput) => string {
  const known = new Map<string, string>();
  return (input) => {
    const folder = dirname(input.to);
    const source = known.get(folder) ?? sourceOfMove(input);
    if (known.size >= MOST_FOLDERS_KNOWN) known.clear();
    known.set(folder, source);
    return source;
  };
}

const MOST_FOLDERS_KNOWN = 10_000;

/** Paths must be absolute, because a worker has another current folder. */
function checkAbsoluteMove(input: unknown): MoveInput {
  const read = checkMove(input);
  const relative = [read.from, read.to].find((path) => !isAbsolute(path));
  if (relative === undefined) return read;
  throw new InvalidInputError(`A move needs absolute paths, got ${show(relative)}.`);
}

/** Reads the stored input of a move. @throws InvalidInputError naming the missing member. */
function checkMove(input: unknown): MoveInput {
  const { from, to } = Object(input) as Record<string, unknown>;
  if (typeof from !== 'string' || from === '') throw new InvalidInputError('A move needs `from`, a path.');
  if (typeof to !== 'string' || to === '') throw new InvalidInputError('A move needs `to`, a path.');
  return { from, to };
}

/** Makes a Standard Schema, which a definition needs, from a function that throws for invalid input. */
function schemaOf<T>(check: (input: unknown) => T) {
  return {
    '~standard': {
      version: 1,
      vendor: 'holdfast',
      validate(value: unknown) {
        try {
          return { value: check(value) };
        } catch (error) {
          if (!(error instanceof InvalidInputError)) throw error;
          return { issues: [{ message: error.message }] };
        }
      },
    },
  } as const;
}
