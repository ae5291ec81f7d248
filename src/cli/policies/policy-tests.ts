import type { Difference, ExampleResult } from '../../config/examples.ts';
import { thrownFrom } from '../../documents/thrown.ts';
import { formatDuration } from '../../duration.ts';
import { plural } from '../../views/plural.ts';
import { visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { registryHere } from './policies-here.ts';
import { textOf } from './policy-files.ts';

/** Tests the examples of a file against the configuration that applies here. Ends with 6 if one gets another answer. */
export async function testExamples(cli: Cli, file: string): Promise<number> {
  const { parseExamples, runExample } = await import('../../config/examples.ts');
  const registry = await registryHere(cli);
  const examples = parseExamples(await textOf(file), file);
  const thrown = (error: unknown) => (typeof error === 'string' ? new Error(error) : thrownFrom(error));
  const results = examples.map((example) => runExample(registry, example, thrown, Date.now()));
  const failed = results.filter(({ wrong }) => wrong.length > 0);
  const exit = failed.length > 0 ? EXIT.invalidConfig : EXIT.done;
  const { terminal } = cli;
  const passed = results.length - failed.length;
  const items = results.map((result) => resultJson(file, result));
  terminal.answer('policies.test', { exit, passed, failed: failed.length, items }, () => {
    for (const result of results) print(cli, file, result);
    const held = plural(passed, 'example holds', 'examples hold');
    const by = registry.config ? ` by ${visible(registry.config.file)}` : ', by the presets alone';
    terminal.result(
      failed.length > 0
        ? `${held}, ${failed.length} ${failed.length === 1 ? 'does' : 'do'} not${by}   (exit ${exit})`
        : `${held}${by}`,
    );
  });
  return exit;
}

function print({ terminal }: Cli, file: string, { example, wrong, foreseen }: ExampleResult): void {
  if (wrong.length === 0) {
    terminal.note(`${terminal.err.glyph('succeeded')} ${visible(example.name)}`);
    return;
  }
  terminal.result(`${terminal.out.glyph('dead')} ${visible(`${file}:${example.line}  ${example.name}`)}`);
  for (const difference of wrong) terminal.result(`    ${visible(differenceWords(difference))}`);
  terminal.result(`    because: ${visible(foreseen.decision.because.text)}`);
}

function differenceWords({ what, expected, got }: Difference): string {
  return `${what}: expected ${words(what, expected)}, got ${words(what, got)}`;
}

function words(what: Difference['what'], value: unknown): string {
  if (value === undefined) return 'none';
  if (what === 'after') return formatDuration(value as number);
  if (what === 'between') return (value as readonly number[]).map(formatDuration).join(' to ');
  return String(value);
}

function resultJson(file: string, { example, wrong, foreseen }: ExampleResult): object {
  return {
    name: example.name,
    file,
    line: example.line,
    passed: wrong.length === 0,
    wrong: wrong.map(({ what, expected, got }) => ({ what, expected, got: got ?? null })),
    because: foreseen.decision.because.text,
  };
}
