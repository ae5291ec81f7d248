import { createInterface } from 'node:readline/promises';

/** Asks on stderr, and answers what was typed. Ctrl-C, and an input that ends, end the command as they would without a question. */
export async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await new Promise<string>((resolve) => {
      lines.once('SIGINT', () => {
        process.stderr.write('\n');
        process.exit(130);
      });
      lines.once('close', () => process.exit(130));
      void lines.question(question).then((answer) => {
        lines.removeAllListeners('close');
        resolve(answer.trim());
      });
    });
  } finally {
    lines.close();
  }
}

/** Whether a person says yes. */
export async function confirm(question: string): Promise<boolean> {
  return /^y(?:es)?$/i.test(await ask(`${question} [y/N] `));
}
