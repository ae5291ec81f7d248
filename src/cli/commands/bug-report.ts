import { homedir, release } from 'node:os';
import type { Command } from 'commander';
import { seenStatus } from '../../documents/status.ts';
import { versionOf } from '../../documents/version.ts';
import { act } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { withStore } from '../opening/open-store.ts';
import { readConfig } from '../opening/read-config.ts';
import { problemOf } from '../problem.ts';

export function declare(command: Command): void {
  command.addHelpText(
    'after',
    `
JSON on stdout, to be attached to a report. It has no inputs, results, messages, notes and names: only versions, settings, sizes, counts
by state and reason, and which kinds of things need attention.`,
  );
  act(command, bugReport);
}

async function bugReport(cli: Cli): Promise<number> {
  const { terminal } = cli;
  const report = { ...machine(), store: await aboutStore(cli) };
  terminal.answer('bug_report', report, () => terminal.out.raw(`${JSON.stringify(report, undefined, 2)}\n`));
  return EXIT.done;
}

function machine(): object {
  const { platform, arch, versions, env } = process;
  return {
    holdfast: versionOf(),
    node: versions.node,
    platform: `${platform} ${arch} ${release()}`,
    locale: env.LC_ALL ?? env.LC_CTYPE ?? env.LANG ?? null,
    time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  };
}

/** A store that cannot be opened is what the report is about, so its problem is part of it. */
async function aboutStore(cli: Cli): Promise<object> {
  try {
    const config = await readConfig(cli);
    return await withStore(cli, {}, async (holdfast, { origin }) => {
      const { kind, schema, durability, driver } = holdfast.describe();
      const { counts, workers, alive, attention } = await seenStatus(cli, holdfast, config?.refused, false);
      const { byState, byReason, due, retrying } = counts;
      return {
        kind,
        named_by: origin,
        schema_version: schema,
        durability,
        driver,
        space: await holdfast.administration.space(),
        clock: await holdfast.administration.clock(),
        by_state: byState,
        by_reason: byReason,
        due,
        retrying,
        workers: { all: workers.length, alive: alive.length },
        attention: attention.map(({ kind, count, reason }) => ({ kind, count, reason: reason ?? null })),
        config: config === undefined ? 'none' : config.refused ? 'refused' : 'read',
      };
    });
  } catch (error) {
    const { code, message } = problemOf(error);
    return { problem: { code, message: message.replaceAll(homedir(), '~') } };
  }
}
