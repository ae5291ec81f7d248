import type { Command } from 'commander';
import { policyJson, shownPolicyContent } from '../../documents/policies.ts';
import { describeOrigin } from '../../failure/layers.ts';
import { PRESET_NAMES } from '../../failure/presets.ts';
import { plural } from '../../views/plural.ts';
import { rulesOf } from '../../views/policy-text.ts';
import { pathWords, valueWords } from '../../views/policy-values.ts';
import { policyWords } from '../../views/task-text.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { findTask } from '../flags/task-ids.ts';
import { DEFAULT, type NamedPolicy, namedPolicy } from '../policies/named-policy.ts';
import { type PoliciesHere, withPolicies } from '../policies/policies-here.ts';
import { diff, validate } from '../policies/policy-files.ts';
import { schedule } from '../policies/policy-schedule.ts';
import { testExamples } from '../policies/policy-tests.ts';
import { usage } from '../problem.ts';
import { declareSubcommands } from '../subcommands.ts';

interface Flags {
  readonly effective?: string;
  readonly reason?: string;
}

export function declare(command: Command): void {
  declareSubcommands<Flags>(command, list, [
    {
      usage: 'show [NAME] [--effective TYPE|ID]',
      summary: 'each value of a policy, and who said it',
      declare: (show) =>
        show.argument('[name]').option('--effective <type|id>', 'what holds for tasks of a type, or for one task'),
      action: (cli, [name], flags) => show(cli, name, flags),
    },
    {
      usage: 'validate [FILE]',
      summary: 'everything that is wrong with a configuration (default: the one that applies here)',
      alsoCalled: ['check', 'lint', 'verify'],
      declare: (validate) => validate.argument('[file]'),
      action: (cli, [file]) => validate(cli, file),
    },
    {
      usage: 'diff [A] B',
      summary: 'what is different for which tasks in two files (default A: the one that applies here)',
      alsoCalled: ['compare'],
      declare: (diff) => diff.argument('<a>').argument('[b]'),
      action: (cli, [a, b]) => diff(cli, a as string, b),
    },
    {
      usage: 'schedule NAME [--reason REASON]',
      summary: 'every delay of a policy, type or preset, and when it gives up',
      alsoCalled: ['delays', 'table', 'plan'],
      declare: (schedule) =>
        schedule
          .argument('<name>')
          .option('--reason <reason>', 'for failures of this reason, kind, or family such as fs.*'),
      action: (cli, [name], { reason }) => schedule(cli, name as string, reason),
    },
    {
      usage: 'test FILE',
      summary: 'whether the examples in a file are answered as they should be',
      alsoCalled: ['run'],
      declare: (test) => test.argument('<file>'),
      action: (cli, [file]) => testExamples(cli, file as string),
    },
  ]);
  command.addHelpText(
    'after',
    `
Lists what the configuration that holds here speaks of, and the presets. A policy is called by its name under \`policies:\`, by a
type, or by a preset. docs/guides/policies.md has the format of configurations and of examples.

Exit codes
  0  it holds
  3  nothing is called so, or there is no configuration
  6  a configuration is refused, or an example is answered otherwise`,
  );
}

// ── List ──

async function list(cli: Cli): Promise<void> {
  return withPolicies(cli, async (here) => {
    const { config } = here.registry;
    const ofDefault = config && config.default.length > 0 ? [DEFAULT] : [];
    const ofFile = [...(config?.policies.keys() ?? []), ...(config?.types.keys() ?? [])];
    const names = [...new Set([...ofDefault, ...ofFile, ...PRESET_NAMES])];
    const policies = await Promise.all(names.map((name) => namedPolicy(here, name)));
    const { terminal } = cli;
    const items = policies.map(policyJson);
    const file = config ? { file: config.file, version: config.version, warnings: config.warnings.length } : null;
    terminal.answer('policies', { config: file, items }, () => {
      const rows = policies.flatMap(({ name, kind, policy }) => [
        [visible(name), kind, policyWords(policy), policy.onExhausted],
        ...rulesOf(policy).map(({ name, words, answer }) => [`  ${visible(name)}`, 'rule', words, answer.onExhausted]),
      ]);
      terminal.table(['NAME', 'IS A', ['ANSWERS BY', 30], 'THEN'], rows);
      terminal.note(file ? sourceWords(cli, file) : 'There is no configuration here: these are the presets.');
    });
  });
}

function sourceWords(cli: Cli, of: { file: string; version: string; warnings: number }): string {
  const warned = `, with ${plural(of.warnings, 'warning', 'warnings')}: ${cli.command('policies validate')}`;
  return `By ${visible(of.file)} (${of.version})${of.warnings > 0 ? warned : ''}`;
}

// ── Show ──

async function show(cli: Cli, name: string | undefined, { effective }: Flags): Promise<void> {
  if (name !== undefined && effective !== undefined) {
    throw usage('Give NAME (one policy as written) or --effective (what applies to tasks), not both');
  }
  if (name === undefined && effective === undefined) return list(cli);
  return withPolicies(cli, async (here) => {
    const shown =
      name === undefined ? await effectivePolicy(cli, here, effective as string) : await namedPolicy(here, name);
    cli.terminal.answer('policies.show', shownPolicyContent(shown), () => print(cli, shown));
  });
}

type Shown = Omit<NamedPolicy, 'kind'> & { readonly kind: NamedPolicy['kind'] | 'task' };

/** `12`, `#12` and a key mean a task if it exists. Everything else is a type. */
async function effectivePolicy(cli: Cli, here: PoliciesHere, of: string): Promise<Shown> {
  const { holdfast } = here;
  if (of === '') throw usage('--effective is empty');
  if (/^#?\d+$/.test(of)) {
    if (!holdfast)
      throw usage(`there is no store here, so no task ${visible(of)}`, { hints: ['a type: --effective TYPE'] });
    const task = await findTask(cli, holdfast, of);
    return { kind: 'task', name: `#${task.id} ${task.type}`, ...(await here.policyFor(task)) };
  }
  const task = await holdfast?.find(of);
  if (task) return { kind: 'task', name: `#${task.id} ${task.type}`, ...(await here.policyFor(task)) };
  return { kind: 'type', name: of, ...(await here.policyFor({ type: of })) };
}

function print({ terminal }: Cli, { kind, name, policy, values }: Shown): void {
  terminal.result(
    `${terminal.out.paint('strong', visible(name))} (${kind})  ${policyWords(policy)}  version ${policy.version}`,
  );
  const rows = values.map(({ path, value, from }) => [
    pathWords(path),
    valueWords(path, value),
    { text: visible(describeOrigin(from)), style: 'idle' as const },
  ]);
  terminal.table(['VALUE', ['IS', 16], ['SAID BY', 12]], rows);
}
