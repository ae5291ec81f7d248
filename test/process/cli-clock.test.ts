import Database from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { type Project, test } from './cli-process.ts';

interface ClockDocument {
  readonly now: string;
  readonly wall: string;
  readonly trouble: string | null;
}

const DAY_MS = 86_400_000;

/** A store with one task, whose time went so much ahead of the wall clock, or stayed so much behind it. */
async function apart(project: Project, ms: number): Promise<void> {
  await project.run('run', '--', 'true');
  const db = new Database(project.path('.holdfast/holdfast.db'));
  db.prepare('UPDATE hf_clock SET high = high + ?').run(ms);
  db.close();
}

/** How much the store's clock is ahead, in days. */
/** Adding 0 makes a 0 of the -0 that a wall clock which goes on between the two readings gives. */
const ahead = ({ now, wall }: ClockDocument) => Math.round((Date.parse(now) - Date.parse(wall)) / DAY_MS) + 0;

describe('holdfast db clock', () => {
  test('says that the store is ahead, so does status, and resets it', async ({ project }) => {
    await apart(project, 40 * DAY_MS);
    const { document: before } = await project.json<ClockDocument>('db', 'clock');
    expect(ahead(before)).toBe(40);
    expect(before.trouble).toMatch(/^The store's time is .* ahead of the wall clock/);
    const check = await project.run('status', '--check');
    expect(check.exit).toBe(8);
    expect(check.stdout).toMatch(/^The store's time is .* ahead/);
    expect((await project.run('db', 'clock')).stdout).toMatch(/db clock --reset/);

    const { document: after } = await project.json<ClockDocument>('db', 'clock', '--reset');
    expect([ahead(after), after.trouble]).toEqual([0, null]);
    expect((await project.run('status', '--check')).exit).toBe(0);
  });

  test.runIf(process.platform === 'linux')('says that the wall clock jumped, and accepts it', async ({ project }) => {
    await apart(project, -40 * DAY_MS);
    const { document: before } = await project.json<ClockDocument>('db', 'clock');
    expect(ahead(before)).toBe(-40);
    expect(before.trouble).toMatch(/^The wall clock jumped 40d ahead/);
    expect((await project.run('db', 'clock')).stdout).toMatch(/db clock --accept/);

    const { document: after } = await project.json<ClockDocument>('db', 'clock', '--accept');
    expect([ahead(after), after.trouble]).toEqual([0, null]);
  });
});
