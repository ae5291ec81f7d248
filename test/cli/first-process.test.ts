import { expect, test } from 'vitest';
import { holdsBackSignals } from '../../src/cli/foreground/first-process.ts';

const NPM = 'node\0/usr/local/bin/npm\0run\0worker\0';

test.each<[string, number, string, string, string | undefined]>([
  ['a shell that is PID 1', 1, '/bin/sh\0-c\0holdfast worker; true\0', '', 'sh'],
  ['npm, through its shell', 7, NPM, '7 (sh -c (x)) S 1 7 7', 'npm'],
  ['npm that set its title', 7, 'npm run worker\0', '7 (sh) S 1 7 7', 'npm'],
  ['an init that passes signals on', 1, '/sbin/tini\0--\0holdfast\0worker\0', '', undefined],
  ['systemd', 1, '/sbin/init\0', '', undefined],
  ['a shell further away, such as that of a person', 9, '/bin/bash\0', '9 (bash) S 4 9 9', undefined],
])('signals are held back by %s: %#', (_, parent, first, stat, by) => {
  expect(holdsBackSignals(parent, (pid) => (pid === 1 ? first : stat))).toBe(by);
});

test('nothing is said where there is no /proc', () => {
  const none = () => {
    throw new Error('ENOENT');
  };
  expect(holdsBackSignals(1, none)).toBeUndefined();
});
