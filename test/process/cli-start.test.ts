import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { test } from './cli-process.ts';

test('a command loads few files, and --version only two', async ({ project }) => {
  const loaded = async (...args: string[]) => {
    const profile = project.path(`profile-${args.join('-')}`);
    expect((await project.start(args, { env: { NODE_V8_COVERAGE: profile } }).ended).exit).toBe(0);
    const [file = ''] = readdirSync(profile);
    const { result } = JSON.parse(readFileSync(join(profile, file), 'utf8')) as { result: { url: string }[] };
    return result.filter(({ url }) => url.includes('/dist/')).length;
  };
  await project.run('run', '--detach', '--', 'true');
  expect(await loaded('--version')).toBe(2);
  expect(await loaded('status')).toBeLessThan(25);
});
