import { createHash } from 'node:crypto';
import { type FSWatcher, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { type DurationInput, duration } from '../duration.ts';
import { InvalidConfigError, InvalidInputError } from '../errors.ts';
import { checkLog, harmless, type Logger, silent } from '../log.ts';
import { refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import type { Config } from './config.ts';
import { loadInto } from './load.ts';
import type { Registry } from './registry.ts';

export interface WatchOptions {
  /** Called with each configuration that is now in use. */
  readonly onReload?: (config: Config) => void;
  /** Called with each invalid configuration; the last valid one stays in use. */
  readonly onRefused?: (error: InvalidConfigError) => void;
  /** Where it is logged that the file was read, refused or cannot be read. Default: only a refused file is reported, as a warning of the process. */
  readonly log?: Logger;
  /** How long a file must be left alone before it is read, since editors write in pieces. Default 100 ms. */
  readonly quietFor?: DurationInput;
  /** How often the file is polled, for systems that do not report changes, such as network shares. Default 5 s. */
  readonly lookEvery?: DurationInput;
}

/** A watched file. */
export interface ConfigWatch {
  /** Reads the file now, changed or not. Returns whether it is now in use. */
  reload(): Promise<boolean>;
  close(): void;
}

const OPTIONS = ['onReload', 'onRefused', 'log', 'quietFor', 'lookEvery'];

/**
 * Keeps a registry equal to a file. It watches the folder, not the file, so that it also notices a file that is replaced by a rename,
 * as editors and deployments do. It does not keep the process alive, and must be closed.
 */
export function watchConfig(path: string, registry: Registry, options: WatchOptions = {}): ConfigWatch {
  refuseUnknown(options, OPTIONS, 'watchConfig');
  const { quietFor = '100ms', lookEvery = '5s', log = silent, onReload } = options;
  // Without a log and a listener, a file that is refused would be ignored in silence.
  const warn = (error: InvalidConfigError) => process.emitWarning(error.message, 'HoldfastWarning');
  const { onRefused = options.log === undefined ? warn : undefined } = options;
  for (const [called, value] of Object.entries({ onReload, onRefused })) {
    if (value === undefined || typeof value === 'function') continue;
    throw new InvalidInputError(`${called} must be a function, got ${show(value)}.`);
  }
  checkLog(log);
  const watched = new Watched(resolve(path), registry, harmless(log), onReload, onRefused);
  return watched.start(duration(quietFor, 'quietFor'), duration(lookEvery, 'lookEvery'));
}

class Watched implements ConfigWatch {
  readonly #path: string;
  readonly #registry: Registry;
  readonly #log: Logger;
  readonly #onReload: WatchOptions['onReload'];
  readonly #onRefused: WatchOptions['onRefused'];
  /** The version of the last text, valid or not: the same text is not refused twice. */
  #seen: string | undefined;
  #watcher: FSWatcher | undefined;
  #quiet: NodeJS.Timeout | undefined;
  #looking: NodeJS.Timeout | undefined;
  #reading: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    path: string,
    registry: Registry,
    log: Logger,
    onReload: WatchOptions['onReload'],
    onRefused: WatchOptions['onRefused'],
  ) {
    this.#path = path;
    this.#registry = registry;
    this.#log = log;
    this.#onReload = onReload;
    this.#onRefused = onRefused;
    this.#seen = registry.config?.version;
  }

  start(quietFor: number, lookEvery: number): this {
    try {
      // Any change in the folder may have changed the file: a rename onto it, or a link that now points elsewhere.
      this.#watcher = watch(dirname(this.#path), { persistent: false }, () => {
        this.#quiet?.refresh();
        this.#quiet ??= setTimeout(() => this.#afterQuiet(), quietFor).unref();
      });
      this.#watcher.on('error', (error) =>
        this.#log.warn(
          { err: error, file: this.#path },
          'The configuration is no longer watched; it is polled instead',
        ),
      );
    } catch (error) {
      this.#log.warn({ err: error, file: this.#path }, 'The configuration cannot be watched; it is polled instead');
    }
    this.#looking = setInterval(() => void this.#look(), lookEvery).unref();
    // It may have changed since it was loaded.
    void this.#look();
    return this;
  }

  reload(): Promise<boolean> {
    return this.#inTurn(() => this.#read());
  }

  close(): void {
    this.#closed = true;
    this.#watcher?.close();
    clearTimeout(this.#quiet);
    clearInterval(this.#looking);
  }

  #afterQuiet(): void {
    this.#quiet = undefined;
    void this.#look();
  }

  /** Reads the file if its text is new. */
  #look(): Promise<boolean> {
    return this.#inTurn(async () => ((await versionOf(this.#path)) === this.#seen ? false : this.#read()));
  }

  async #read(): Promise<boolean> {
    if (this.#closed) return false;
    this.#seen = await versionOf(this.#path);
    try {
      await loadInto(this.#registry, this.#path);
    } catch (error) {
      if (!(error instanceof InvalidConfigError)) throw error;
      this.#log.error(
        { err: error, file: this.#path },
        'The configuration is invalid; the last valid one stays in use',
      );
      this.#onRefused?.(error);
      return false;
    }
    const config = this.#registry.config as Config;
    this.#log.info({ file: this.#path, version: config.version }, 'The configuration is now in use');
    for (const { line, message } of config.warnings) this.#log.warn({ file: this.#path, line }, message);
    this.#onReload?.(config);
    return true;
  }

  /** One reading at a time, so that an older text never follows a newer one. */
  #inTurn(read: () => Promise<boolean>): Promise<boolean> {
    const turn = this.#reading.then(() => (this.#closed ? false : read()));
    this.#reading = turn.catch(() => {});
    return turn;
  }
}

/** As `Config.version`. If the file cannot be read, a text that cannot be a hash. */
async function versionOf(path: string): Promise<string> {
  try {
    return createHash('sha256')
      .update(await readFile(path, 'utf8'))
      .digest('hex')
      .slice(0, 12);
  } catch (error) {
    return `unreadable: ${(error as NodeJS.ErrnoException).code}`;
  }
}
