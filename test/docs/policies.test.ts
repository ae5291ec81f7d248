import { readdir, readFile } from 'node:fs/promises';
import { describe, expect } from 'vitest';
import { PRESET_NAMES } from '../../src/failure/presets.ts';
import type { HeldBy } from '../../src/store/store.ts';
import { test } from '../process/cli-process.ts';

async function blocks(page: string, language: string): Promise<readonly string[]> {
  const text = await readFile(page, 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, code]) => code as string);
}

describe('docs/guides/policies.md', () => {
  test('has examples that hold by its first configuration', async ({ project }) => {
    const [configuration = '', ...others] = await blocks('docs/guides/policies.md', 'yaml');
    project.write('holdfast.yaml', configuration);
    project.write('policies.test.yaml', others.find((text) => text.includes('\ntests:\n')) as string);
    expect(await project.run('policies', 'test', 'policies.test.yaml')).toMatchObject({
      exit: 0,
      stdout: '4 examples hold by holdfast.yaml\n',
    });
  });

  test('shows commands that there are', async ({ project }) => {
    const configurations = await blocks('docs/guides/policies.md', 'yaml');
    project.write('holdfast.yaml', configurations[0] as string);
    project.write('new.yaml', configurations[0] as string);
    const [shell = ''] = await blocks('docs/guides/policies.md', 'sh');
    const lines = shell.split('\n').filter((line) => line.startsWith('holdfast policies') && !line.includes(' test '));
    expect(lines.length).toBeGreaterThan(4);
    for (const line of lines) {
      const words = line
        .replace(/ {2,}#.*/, '')
        .split(' ')
        .slice(1);
      expect([line, (await project.run(...words)).exit]).toEqual([line, 0]);
    }
  });
});

describe('docs/guides/sources.md', () => {
  test('names everything that holds a task', async () => {
    const text = await readFile('docs/guides/sources.md', 'utf8');
    const causes: Readonly<Record<HeldBy, true>> = {
      breaker: true,
      rate_limit: true,
      needs_person: true,
      budget: true,
      pace: true,
      concurrency: true,
      source_held: true,
      queue_paused: true,
      no_worker: true,
    };
    expect(Object.keys(causes).filter((cause) => !text.includes(`| \`${cause}\``))).toEqual([]);
  });
});

describe('docs/guides/coming-from', () => {
  test('has a page for each of the five systems, and names presets that there are', async () => {
    const LIBRARIES = ['bullmq', 'pg-boss', 'graphile-worker', 'celery', 'sidekiq'].map((name) => `${name}.md`);
    const pages = (await readdir('docs/guides/coming-from')).filter(
      (name) => name !== 'README.md' && !LIBRARIES.includes(name),
    );
    expect(pages.length).toBe(5);
    for (const page of pages) {
      const text = await readFile(`docs/guides/coming-from/${page}`, 'utf8');
      const [, named = ''] = /The presets? (?:is|are) (.*?)[.:;]/s.exec(text) ?? [];
      const names = [...named.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name);
      expect(names.length).toBeGreaterThan(0);
      expect(names.filter((name) => !PRESET_NAMES.includes(name as string))).toEqual([]);
    }
  });
});
