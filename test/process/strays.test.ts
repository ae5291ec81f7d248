import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('strays.mjs', import.meta.url));

async function run(what: string, ...flags: readonly string[]) {
  const child = spawn(process.execPath, [...flags, PROGRAM, what], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const said = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  return { said, stderr, exit: await ended };
}

const WENT_ON = { history: [] };

describe('while a worker is there', () => {
  test('what a handler left behind is recorded with its task, and the process goes on, also after a drain', async () => {
    expect(await run('owned')).toEqual({ said: [{ history: ['stray'] }], stderr: '', exit: 0 });
  });

  test.each(['rejection', 'exception', 'after stop'])(
    'a foreign %s ends the process by the rules of Node',
    async (what) => {
      const { said, stderr, exit } = await run(what);
      expect([said, exit]).toEqual([[], 1]);
      expect(stderr).toContain('Error: foreign');
    },
  );

  test('foreign rejections are heard by whoever else listens, as ever', async () => {
    expect(await run('heard')).toMatchObject({ said: [{ heard: 'foreign' }, WENT_ON], exit: 0 });
    const caught = { caught: 'foreign', origin: 'unhandledRejection' };
    expect(await run('caught')).toMatchObject({ said: [caught, WENT_ON], exit: 0 });
  });

  test('the flags of Node hold for foreign rejections', async () => {
    expect(await run('rejection', '--unhandled-rejections=none')).toEqual({ said: [WENT_ON], stderr: '', exit: 0 });
    const warned = await run('rejection', '--unhandled-rejections=warn');
    expect(warned).toMatchObject({ said: [WENT_ON], exit: 0 });
    expect(warned.stderr).toContain('UnhandledPromiseRejectionWarning');
  });
});
