import { pathToFileURL } from 'node:url';
import { InvalidInputError } from '../../errors.ts';
import { oneOf } from '../../options.ts';
import { show } from '../../show.ts';

/** Where `run` is called. `module` and `memory` need `runIn: 'process'`. */
export interface RunInOptions {
  /**
   * `process`: each execution has a child process of its own. If it crashes, blocks its event loop or uses too much memory, only this
   * task is affected. Default: in the process of the worker.
   */
  readonly runIn?: 'process';
  /**
   * The module that exports this definition, usually `import.meta.url`; or an absolute path. The child process imports it, so it must not start
   * a worker.
   */
  readonly module?: string | URL;
  /** How large the JavaScript heap of the child may grow, such as `256MB`; at least `32MB`. Buffers do not count. Default: that of Node. */
  readonly memory?: string;
}

/** How the child process of a type is started. */
export interface ChildSettings {
  /** The address of the module. */
  readonly module: string;
  readonly memory?: string;
  readonly memoryMb?: number;
}

/** Undefined if the type runs in the process of the worker. */
export function parseRunIn({ runIn, module, memory }: RunInOptions, what: string): ChildSettings | undefined {
  if (runIn === undefined) {
    for (const [name, value] of Object.entries({ module, memory })) {
      if (value !== undefined) throw new InvalidInputError(`${name} in ${what} needs runIn: 'process'.`);
    }
    return undefined;
  }
  oneOf(runIn, ['process'], 'runIn');
  return { module: addressOf(module, what), ...(memory !== undefined && { memory, memoryMb: megabytes(memory) }) };
}

function addressOf(module: unknown, what: string): string {
  if (module instanceof URL) return module.href;
  if (typeof module === 'string' && module.startsWith('file:')) return module;
  if (typeof module === 'string' && /^(?:\/|[a-z]:[\\/])/i.test(module)) return pathToFileURL(module).href;
  throw new InvalidInputError(
    `runIn: 'process' in ${what} needs the module that exports the definition: write module: import.meta.url, or an absolute path. Got ${show(module)}.`,
  );
}

/** Node does not start with much less. */
const LEAST_MB = 32;

function megabytes(memory: unknown): number {
  const [, count, unit] = /^(\d+) ?(MB|GB)$/i.exec(typeof memory === 'string' ? memory : '') ?? [];
  const size = Number(count) * (unit?.toUpperCase() === 'GB' ? 1_024 : 1);
  if (size >= LEAST_MB) return size;
  throw new InvalidInputError(
    `memory must be at least '${LEAST_MB}MB', such as '256MB' or '2GB', got ${show(memory)}.`,
  );
}
