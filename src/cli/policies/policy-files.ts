import { readFile } from 'node:fs/promises';
import type { Change, Comparison } from '../../config/compare.ts';
import type { Registry } from '../../config/registry.ts';
import { type ConfigProblem, InvalidConfigError } from '../../errors.ts';
import { describeOrigin, type Origin } from '../../failure/layers.ts';
import { plural } from '../../views/plural.ts';
import { pathWords, valueWords } from '../../views/policy-values.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { CONFIG_PLACES } from '../opening/config-location.ts';
import { readConfig } from '../opening/read-config.ts';
import { configProblemJson, configProblemLine, Problem } from '../problem.ts';

// ── Validate ──

/** Shows everything that is wrong with a file, or with the configuration that applies here. */
export async function validate(cli: Cli, given: string | undefined): Promise<number> {
  const { file, problems } = given === undefined ? await problemsHere(cli) : await problemsIn(given);
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  const exit = errors > 0 ? EXIT.invalidConfig : EXIT.done;
  const warnings = problems.length - errors;
  const { terminal } = cli;
  const found = { exit, file, valid: errors === 0, errors, warnings, problems: problems.map(configProblemJson) };
  terminal.answer('policies.validate', found, () => {
    for (const problem of problems) terminal.result(configProblemLine(file, problem));
    const also = warnings === 0 ? '' : `, ${plural(warnings, 'warning', 'warnings')}`;
    terminal.result(
      errors > 0
        ? `✕ ${visible(file)}: ${plural(errors, 'error', 'errors')}${also}. The file is not used.   (exit ${exit})`
        : `✓ ${visible(file)} is good${also}`,
    );
  });
  return exit;
}

interface Looked {
  readonly file: string;
  readonly problems: readonly ConfigProblem[];
}

async function problemsHere(cli: Cli): Promise<Looked> {
  const found = await readConfig(cli);
  if (!found) {
    throw new Problem('not_found', 'there is no configuration here', {
      why: [`Looked for ${CONFIG_PLACES.join(', then ')}.`],
      hints: [`another one: ${cli.command('policies validate FILE')}`],
    });
  }
  if (found.refused) return found.refused;
  const { file = found.path, warnings = [] } = found.registry.config ?? {};
  return { file, problems: warnings };
}

async function problemsIn(path: string): Promise<Looked> {
  try {
    const { file = path, warnings = [] } = (await load(path)).config ?? {};
    return { file, problems: warnings };
  } catch (error) {
    if (error instanceof InvalidConfigError) return error;
    throw error;
  }
}

async function load(path: string): Promise<Registry> {
  const { loadConfig } = await import('../../config/load.ts');
  return loadConfig(path);
}

// ── Diff ──

/** Shows for which tasks the second file changes something. A single file is compared with the configuration that applies here. */
export async function diff(cli: Cli, a: string, b: string | undefined): Promise<void> {
  const { compareConfigs, comparisonJson } = await import('../../config/compare.ts');
  const { registryHere } = await import('./policies-here.ts');
  const [before, after] = b === undefined ? [await registryHere(cli), await load(a)] : [await load(a), await load(b)];
  const comparisons = compareConfigs(before, after);
  const { terminal } = cli;
  const [from, to] = [before, after].map(({ config }) => config?.file ?? null);
  const items = comparisons.map(comparisonJson);
  terminal.answer('policies.diff', { from, to, same: items.length === 0, items }, () => {
    for (const group of together(comparisons)) printGroup(cli, group);
    const [old, recent] = [visible(from ?? 'no configuration'), visible(to ?? 'no configuration')];
    if (comparisons.length === 0) terminal.result(`Tasks are answered alike by ${old} and ${recent}.`);
    if (before.classifier || after.classifier) {
      terminal.note(
        'Rules under `classify:` are not compared: what they recognise depends on the error (holdfast classify).',
      );
    }
  });
}

/** Types with the same changes are shown together: a change of the defaults affects many of them. */
function together(comparisons: readonly Comparison[]): readonly (readonly Comparison[])[] {
  const groups = new Map<string, Comparison[]>();
  for (const comparison of comparisons) {
    const key = JSON.stringify(comparison.changes.map(({ path, before, after }) => [path, before ?? 0, after ?? 0]));
    groups.set(key, [...(groups.get(key) ?? []), comparison]);
  }
  return [...groups.values()];
}

const MOST_NAMED = 6;

function printGroup({ terminal }: Cli, group: readonly Comparison[]): void {
  const names = group.map(({ what, name }) => (what === 'other' || what === 'worker' ? name : `${what} ${name}`));
  const more = names.length > MOST_NAMED ? `, and ${names.length - MOST_NAMED} more` : '';
  terminal.result(terminal.out.paint('strong', visible(`${names.slice(0, MOST_NAMED).join(', ')}${more}`)));
  for (const change of group[0]?.changes ?? []) terminal.result(`  ${changeWords(change)}`);
}

/** `maxAttempts  5 (default) → 8 (b.yaml:4)`. */
function changeWords({ path, before, after, beforeFrom, afterFrom }: Change): string {
  const said = (value: unknown, from: Origin | undefined) =>
    `${valueWords(path, value)}${from ? ` (${visible(describeOrigin(from))})` : ''}`;
  return `${pathWords(path)}  ${said(before, beforeFrom)} → ${said(after, afterFrom)}`;
}

/** The text of a file that is not a configuration. @throws Problem if it cannot be read. */
export async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const missing = code === 'ENOENT';
    const what = missing ? `there is no file ${visible(path)}` : `${visible(path)} cannot be read: ${visible(message)}`;
    throw new Problem('not_found', what, { cause: error });
  }
}
