import type { Command } from 'commander';
import { formatDuration } from '../../duration.ts';
import { classify as classifyError } from '../../failure/classify/classify.ts';
import type { Failure } from '../../failure/outcome.ts';
import { failureJson } from '../../views/json-shapes.ts';
import { visible } from '../../views/visible.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { errorFromJson, errorGiven } from '../flags/error-given.ts';
import { readStdin } from '../flags/given.ts';
import { readConfig } from '../opening/read-config.ts';
import { usage } from '../problem.ts';

interface Flags {
  readonly type?: string;
}

export function declare(command: Command): void {
  command
    .argument('[message]')
    .option('--type <type>', 'the type of the task that threw it, for rules that are about one')
    .addHelpText('after', HELP);
  act<Flags>(command, classify);
}

const HELP = `
MESSAGE is what an error says. If it begins with { it is read as JSON, which also comes on stdin:
  {"name": "…", "message": "…", "code": "…", "status": 503, "headers": {"retry-after": "5"}, "cause": {…}, "errors": [{…}]}
Every member is put onto an Error as it is, so whatever a library attaches may stand there (response, syscall, errno, body …).
"cause" and the members of "errors" are read in the same way; "class" is the name of the constructor where it is not the name.
A JSON text or number is what was thrown itself, without an error around it.

  holdfast classify 'connect ECONNREFUSED 10.0.0.5:5432'
  echo '{"status": 429, "headers": {"retry-after": "120"}}' | holdfast classify --json`;

async function classify(cli: Cli, [message]: readonly string[], flags: Flags): Promise<void> {
  const thrown = await whatWasThrown(cli, message);
  const found = await readConfig(cli);
  if (found?.refused) throw found.refused;
  const byRules = found?.registry.classifier?.classify ?? classifyError;
  const failure = byRules(thrown, {
    now: Date.now(),
    ...(flags.type !== undefined && { type: flags.type }),
  });
  cli.terminal.answer('classify', { failure: failureJson(failure) }, () => {
    for (const line of lines(failure)) cli.terminal.result(line);
  });
}

async function whatWasThrown(cli: Cli, message: string | undefined): Promise<unknown> {
  if (message !== undefined) return errorGiven(message);
  if (process.stdin.isTTY) {
    throw usage('there is nothing to classify', {
      hints: [`a message: ${cli.command("classify '…'")}`, 'or JSON on stdin'],
    });
  }
  const given = await readStdin(LARGEST, () => usage('what comes on stdin is more than 16 MiB'));
  return errorFromJson(given.toString());
}

const LARGEST = 16 * 1024 * 1024;

function lines(failure: Failure): string[] {
  const { kind, reason, fault, ambiguous, retryAfterMs, code, name, message, evidence } = failure;
  const rows: readonly (readonly [label: string, text: string])[] = [
    ['kind', kind],
    ['reason', reason],
    ['fault', fault],
    ['ambiguous', ambiguous ? 'yes: its effect may have happened' : 'no'],
    ['retry after', retryAfterMs === undefined ? 'none' : formatDuration(retryAfterMs)],
    ['rule', evidence.rule],
    ['read in', evidence.field ?? 'nothing: no field says more'],
    ...(code === undefined ? [] : ([['code', code]] as const)),
    ['error', `${name}: ${message}`],
  ];
  return rows.map(([label, text]) => `${label.padEnd(12)} ${visible(text)}`);
}
