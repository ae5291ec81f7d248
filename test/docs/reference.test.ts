import { expect, test } from 'vitest';
import { root, run } from './packed.ts';

test('the page of every option is current', async () => {
  const checked = run(process.execPath, ['scripts/reference.mjs', '--check'], { cwd: root });
  await expect(checked).resolves.toEqual({ stdout: '', stderr: '' });
});
