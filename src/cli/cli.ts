import { lstatSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { quoted } from '../views/visible.ts';
import type { GlobalFlags } from './flags/global-flags.ts';
import { type ConfigLocation, locateConfig, mayBeConfig } from './opening/config-location.ts';
import { configuredStore } from './opening/configured-store.ts';
import {
  locateStore,
  projectOf,
  type StoreLocation,
  type Surroundings,
  withoutPassword,
} from './opening/store-location.ts';
import { usage } from './problem.ts';
import { Terminal } from './terminal/terminal.ts';

/** What each command needs: its terminal, its environment, and the flags that all commands share. */
export class Cli {
  readonly terminal: Terminal;
  readonly environment: NodeJS.ProcessEnv;
  readonly yes: boolean;
  readonly #store: string | undefined;
  readonly #config: string | undefined;

  constructor(flags: GlobalFlags) {
    this.environment = process.env;
    this.yes = flags.yes ?? false;
    this.#store = flags.store;
    this.#config = flags.config;
    this.terminal = new Terminal(process, flags);
  }

  /** Whether a person is asked before an action that cannot be undone. */
  get asks(): boolean {
    return !this.yes && this.terminal.mayAsk;
  }

  /** The current folder. @throws Problem if it was removed. */
  get cwd(): string {
    try {
      return process.cwd();
    } catch (error) {
      throw usage('the current folder does not exist any more', { hints: ['cd to one that does'], cause: error });
    }
  }

  /** Where the store is. @throws Problem if it cannot be a store; InvalidConfigError if a configuration names it and is invalid. */
  async location(): Promise<StoreLocation> {
    const given = this.#store !== undefined || this.environment.HOLDFAST_STORE;
    const config = given ? undefined : this.config();
    return locateStore(this.#store, this.#around, config && (await configuredStore(config)));
  }

  /** The configuration that applies here, if there is one. It is not read yet. @throws Problem for an empty flag. */
  config(): ConfigLocation | undefined {
    return locateConfig(this.#config, {
      environment: this.environment,
      cwd: this.cwd,
      home: homedir(),
      project: projectOf(this.#store, this.#around),
      isFile: mayBeConfig,
    });
  }

  get #around(): Surroundings {
    return {
      environment: this.environment,
      cwd: this.cwd,
      home: homedir(),
      platform: process.platform,
      ownerOf: ownerOfFolder,
      user: process.getuid?.() ?? null,
    };
  }

  /** A command to type next. It contains the flags for the store and the configuration if this command had them. */
  command(words: string): string {
    const store = this.#store === undefined ? '' : `-s ${quoted(withoutPassword(this.#store))} `;
    const config = this.#config === undefined ? '' : `-c ${quoted(this.#config)} `;
    return `holdfast ${store}${config}${words}`;
  }

  /** Who acts, for the history of the task. */
  get actor(): string {
    try {
      return userInfo().username || 'cli';
    } catch {
      // A user without an entry in the system's list, as in many containers.
      return 'cli';
    }
  }
}

function ownerOfFolder(path: string): number | null | undefined {
  try {
    const found = lstatSync(path);
    if (!found.isDirectory() && !found.isSymbolicLink()) return undefined;
    return process.getuid ? found.uid : null;
  } catch {
    // It does not exist, or this user may not look into its folder: then it is not used.
    return undefined;
  }
}
