import { describe, expect } from 'vitest';
import { test } from './cli-process.ts';

/** What a shell writes into its stdin. */
const given = (text: string) => ({ under: ['sh', '-c', `printf %s '${text}' | "$@"`, 'sh'] });

describe.concurrent('holdfast classify', () => {
  test('says what a message is, and where it read that', async ({ project }) => {
    const { exit, stdout } = await project.run('classify', 'connect ECONNREFUSED 10.0.0.5:5432');
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^kind {9}transient\nreason {7}net\.refused\nfault {8}source\nambiguous {4}no\n/);
    expect(stdout).toMatch(/\nretry after {2}none\nrule {9}\S+\nread in {6}message\n/);
    expect(stdout).toMatch(/\nerror {8}Error: connect ECONNREFUSED 10\.0\.0\.5:5432\n$/);
  });

  test('takes an error as JSON, on stdin or as its argument', async ({ project }) => {
    const json = '{"status":429,"headers":{"retry-after":"120"}}';
    const piped = await project.start(['classify', '--json', '--type', 'mail'], given(json)).ended;
    expect(JSON.parse(piped.stdout)).toMatchObject({
      schema: 'holdfast.classify/v1',
      failure: {
        kind: 'rate_limited',
        reason: 'http.429',
        fault: 'quota',
        ambiguous: false,
        retry_after_ms: 120_000,
        evidence: { rule: 'http', field: 'status' },
      },
    });
    const argument = await project.run('classify', json);
    expect([argument.exit, argument.stdout]).toEqual([0, expect.stringContaining('retry after  2m\n')]);
  });

  test('shows no secret and no control character', async ({ project }) => {
    const { stdout } = await project.run('classify', 'GET https://eva:geheim@host/ failed\u001b[2J');
    expect(stdout).toContain('host/ failed');
    expect([stdout.includes('geheim'), stdout.includes('\u001b')]).toEqual([false, false]);
  });

  test('refuses what is no JSON', async ({ project }) => {
    const { exit, stderr } = await project.start(['classify'], given('Error: nope')).ended;
    expect([exit, stderr]).toEqual([2, expect.stringContaining('what was given is no JSON')]);
    expect(stderr).toContain('a message alone is an argument');
  });
});
