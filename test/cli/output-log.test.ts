import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { OutputLog, OutputReader } from '../../src/cli/output/output-log.ts';
import type { Stream } from '../../src/documents/logs.ts';
import { silent } from '../../src/log.ts';
import { useFolder } from '../worker/scene.ts';

const folder = useFolder();

/** A store is only a place here. */
function stage() {
  const store = join(folder(), 'tasks.db');
  writeFileSync(store, '');
  const place = { kind: 'file', path: store } as const;
  const warnings: unknown[] = [];
  const log = { ...silent, warn: (fields: object) => void warnings.push(fields) };
  const keeper = (id: number, execution = 1) => {
    const keep = new OutputLog(place, log).keeper({ id, execution });
    return (stream: Stream, text: string | Buffer) => keep(stream, Buffer.from(text));
  };
  return { store, logs: `${store}.logs`, warnings, keeper, reader: (id = 1) => new OutputReader(place, id) };
}

const textOf = (printed: readonly { readonly text: string }[]) => printed.map(({ text }) => text).join('');

describe('what a command printed', () => {
  test('is read back in order, of each execution and stream, and of no other task', () => {
    const { keeper, reader } = stage();
    const first = keeper(1);
    first('stdout', 'a\n');
    first('stderr', 'b\n');
    keeper(1, 2)('stdout', 'c');
    keeper(11)('stdout', 'elsewhere');

    const printed = reader().news();
    expect(printed.map(({ execution, stream, text }) => [execution, stream, text])).toEqual([
      [1, 'stdout', 'a\n'],
      [1, 'stderr', 'b\n'],
      [2, 'stdout', 'c'],
    ]);
    expect(reader(2).news()).toEqual([]);
  });

  test('may be cut within a character, or be no text at all', () => {
    const { keeper, reader } = stage();
    const keep = keeper(1);
    const euro = Buffer.from('€');
    keep('stdout', euro.subarray(0, 1));
    keep('stderr', 'between');
    keep('stdout', euro.subarray(1));
    keep('stdout', Buffer.from([0xff, 0, 10]));
    const printed = reader().news();
    expect(textOf(printed.filter(({ stream }) => stream === 'stdout'))).toBe('€\ufffd\0\n');
  });

  test('is found by whoever reaches the store by a link', () => {
    const { store, keeper } = stage();
    keeper(1)('stdout', 'a');
    symlinkSync(store, join(folder(), 'link.db'));
    expect(textOf(new OutputReader({ kind: 'file', path: join(folder(), 'link.db') }, 1).news())).toBe('a');
  });

  test('may be read by those who may read the store, and by nobody else', () => {
    const { store, logs, keeper } = stage();
    chmodSync(store, 0o640);
    keeper(1)('stdout', 'a');
    expect(statSync(logs).mode & 0o777).toBe(0o750);
    expect(statSync(join(logs, '1.jsonl')).mode & 0o777).toBe(0o640);
  });

  test('is kept for this user alone where the store is on a server', () => {
    const place = { kind: 'postgres', output: join(folder(), 'state', 'output', 'db') } as const;
    new OutputLog(place, silent).keeper({ id: 1, execution: 1 })('stdout', Buffer.from('a'));
    expect(textOf(new OutputReader(place, 1).news())).toBe('a');
    expect(statSync(place.output).mode & 0o777).toBe(0o700);
    expect(statSync(join(place.output, '1.jsonl')).mode & 0o777).toBe(0o600);
  });
});

describe('the output that a following reader gets', () => {
  test('is what came since it looked last, through every change of files', () => {
    const { keeper, reader } = stage();
    const [keep, follower] = [keeper(1), reader()];
    let [said, heard] = ['', ''];
    for (let i = 0; i < 200; i += 1) {
      const text = `${i} ${'x'.repeat(10_000)}\n`;
      said += text;
      keep('stdout', text);
      heard += textOf(follower.news());
    }
    expect(heard === said).toBe(true);
    expect([follower.news(), follower.incomplete]).toEqual([[], false]);
  });

  test('is that it missed something, if it looks too seldom', () => {
    const { keeper, reader } = stage();
    const [keep, follower] = [keeper(1), reader()];
    keep('stdout', 'first\n');
    expect(textOf(follower.news())).toBe('first\n');
    for (let i = 0; i < 200; i += 1) keep('stdout', `${i} ${'x'.repeat(10_000)}\n`);
    expect(textOf(follower.news())).toMatch(/199 x+\n$/);
    expect(follower.incomplete).toBe(true);
  });

  test('is nothing of a line that is still being written', () => {
    const { logs, keeper, reader } = stage();
    keeper(1)('stdout', 'whole\n');
    const follower = reader();
    appendFileSync(join(logs, '1.jsonl'), '{"execution":1,"stream":"stdout","at":0,');
    expect(textOf(follower.news())).toBe('whole\n');
    appendFileSync(join(logs, '1.jsonl'), '"text":"late"}\n');
    expect(textOf(follower.news())).toBe('late');
  });
});

describe('the files', () => {
  test('keep at least the last 256 KiB of a task, and hardly more than twice that', () => {
    const { logs, keeper, reader } = stage();
    const keep = keeper(1);
    const line = `${'x'.repeat(999)}\n`;
    for (let i = 0; i < 5_000; i += 1) keep('stdout', line);

    const files = readdirSync(logs).map((name) => statSync(join(logs, name)).size);
    expect(files.reduce((sum, size) => sum + size, 0)).toBeLessThan(2 * 256 * 1024 + 2_000);
    const all = reader();
    expect(textOf(all.news()).length).toBeGreaterThan(220_000);
    expect(all.incomplete).toBe(true);
  });

  test('lose no more than the line that a crash cut short', () => {
    const { logs, keeper, reader } = stage();
    keeper(1)('stdout', 'before\n');
    appendFileSync(join(logs, '1.jsonl'), '{"execution":1,"stre');
    keeper(1, 2)('stdout', 'after\n');
    expect(textOf(reader().news())).toBe('before\nafter\n');
  });

  test('are begun anew where somebody wrote something else into them', () => {
    const { logs, keeper, reader } = stage();
    mkdirSync(logs);
    writeFileSync(join(logs, '1.jsonl'), 'x'.repeat(300_000));
    keeper(1)('stdout', 'mine');
    expect(textOf(reader().news())).toBe('mine');
  });

  test('are so many at most: those that were written longest ago go', () => {
    const { logs, keeper, reader } = stage();
    mkdirSync(logs);
    for (let id = 10; id < 2_030; id += 1) {
      writeFileSync(join(logs, `${id}.jsonl`), '');
      utimesSync(join(logs, `${id}.jsonl`), id, id);
    }
    keeper(1)('stdout', 'newest');
    expect(readdirSync(logs)).toHaveLength(2_000);
    expect(readdirSync(logs)).not.toContain('30.jsonl');
    expect(readdirSync(logs)).toContain('31.jsonl');
    expect(textOf(reader().news())).toBe('newest');
  });
});

test('output that cannot be stored is no failure: it is reported once, and storing continues when it can', () => {
  const { logs, warnings, keeper, reader } = stage();
  writeFileSync(logs, 'a file where the folder should be');
  const keep = keeper(1);
  for (const text of ['a', 'b', 'c']) keep('stdout', text);
  expect(warnings).toHaveLength(1);
  rmSync(logs);
  keep('stdout', 'd');
  expect(textOf(reader().news())).toBe('d');
  rmSync(logs, { recursive: true });
  keep('stdout', 'lost with its folder');
  keep('stdout', 'e');
  expect(textOf(reader().news())).toBe('e');
});
