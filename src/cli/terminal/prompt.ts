import { createInterface, type Interface } from 'node:readline/promises';
import type { Cli } from '../cli.ts';

/**
 * Asks on stderr, and returns what was typed. Ctrl-C and the end of the input end the command. It has changed nothing before the
 * answer.
 */
export class Prompt implements Disposable {
  readonly #lines: Interface = createInterface({ input: process.stdin, output: process.stderr });

  constructor() {
    this.#lines.on('close', leave);
    this.#lines.on('SIGINT', () => this.#lines.close());
  }

  async ask(question: string): Promise<string> {
    return (await this.#lines.question(question)).trim();
  }

  /** Whether a person says yes. */
  async confirm(question: string): Promise<boolean> {
    return /^y(?:es)?$/i.test(await this.ask(`${question} [y/N] `));
  }

  [Symbol.dispose](): void {
    this.#lines.off('close', leave);
    this.#lines.close();
  }
}

/** Whether a command may go on. A person is asked, except with --yes. A script is not asked. */
export async function mayGoOn(cli: Cli, question: string): Promise<boolean> {
  if (!cli.asks) return true;
  using prompt = new Prompt();
  const yes = await prompt.confirm(question);
  if (!yes) cli.terminal.note('Nothing was changed.');
  return yes;
}

function leave(): never {
  process.stderr.write('\n');
  process.exit(130);
}
