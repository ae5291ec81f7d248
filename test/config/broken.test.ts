import { describe, expect, test } from 'vitest';
import { parseConfig, problemsOf } from '../../src/config/config.ts';
import { InvalidConfigError } from '../../src/errors.ts';
import { BROKEN_FILES } from './broken-files.ts';

describe('a file is told what is wrong with it, and where', () => {
  test.each(Object.entries(BROKEN_FILES))('%s', (_, { text, problems }) => {
    const found = problemsOf(text);
    const seen = found.map(({ line, column, severity, message, suggestion = '' }) => ({
      place: `${line}:${column} ${severity}`,
      message,
      suggestion,
    }));
    expect(seen).toEqual(
      problems.map(([place, message, suggestion = '']) => ({
        place,
        message: expect.stringContaining(message),
        suggestion: expect.stringContaining(suggestion),
      })),
    );
  });

  test('in more than sixty ways', () => {
    expect(Object.keys(BROKEN_FILES).length).toBeGreaterThan(60);
  });
});

describe('a refusal', () => {
  const text = 'types:\n  mail:\n    retry: { maxAttempts: 0, timeout: 5 }\nqueues: { fine: { order: lifo } }';

  function refusal(): InvalidConfigError {
    try {
      parseConfig(text, { file: 'conf/holdfast.yaml' });
    } catch (error) {
      return error as InvalidConfigError;
    }
    throw new Error('It was not refused.');
  }

  test('has a code, the file, and each problem with its path, place, value and help', () => {
    const error = refusal();
    expect(error).toBeInstanceOf(InvalidConfigError);
    expect(error).toMatchObject({ code: 'invalid_config', file: 'conf/holdfast.yaml' });
    expect(error.problems).toEqual([
      {
        severity: 'error',
        path: 'types.mail.retry.maxAttempts',
        line: 3,
        column: 27,
        value: '0',
        message: "It must be a whole number of at least 1, got '0'.",
      },
      {
        severity: 'error',
        path: 'types.mail.retry.timeout',
        line: 3,
        column: 39,
        value: '5',
        message: '5 has no unit.',
        suggestion: 'Write 5s for seconds, or 5ms.',
      },
    ]);
  });

  test('says all of it in its message, a line each', () => {
    expect(refusal().message).toBe(
      [
        'conf/holdfast.yaml is refused: 2 errors. The file is not used.',
        "  3:27  error  It must be a whole number of at least 1, got '0'.",
        '  3:39  error  5 has no unit. Write 5s for seconds, or 5ms.',
      ].join('\n'),
    );
  });

  test('shows no control characters of the file, and no more than a line of it', () => {
    const [problem] = problemsOf(`types: { a: { retry: { timeout: "\\e[31m${'x'.repeat(500)}" } } }`);
    expect(problem?.message).not.toContain('\u001b');
    expect(problem?.message.length).toBeLessThan(200);
    expect(problem?.value.length).toBeLessThanOrEqual(80);
  });
});
