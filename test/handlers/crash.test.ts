import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';
import { crashOf } from '../../src/handlers/crash.ts';

function stderrOf(program: string, ...args: string[]): string {
  return spawnSync(program, args, { encoding: 'utf8' }).stderr;
}

const node = (code: string) => stderrOf(process.execPath, '-e', code);
const python = (code: string) => stderrOf('python3', '-c', code);

test.each<[program: string, stderr: () => string, line: string | undefined]>([
  ['Node', () => node('function pay() { throw new TypeError("no card\\nat all") }\npay()'), 'TypeError: no card'],
  ['Node, in a promise', () => node('Promise.reject(new Error("late"))'), 'Error: late'],
  ['Node, with a cause', () => node('throw new Error("a", { cause: new Error("b") })'), 'Error: a'],
  ['Node, with fields', () => node('throw Object.assign(new Error("a"), { code: "E1" })'), 'Error: a'],
  ['Node, with no error', () => node('throw "a text"'), 'a text'],
  ['Node, of wrong syntax', () => node('let let = 1'), 'SyntaxError: let is disallowed as a lexically bound name'],
  [
    'Node 24, of wrong syntax in `-e`',
    () =>
      "[eval]:1\nfoo bar\n    ^^^\nExpected ';', '}' or <eof>\n\nSyntaxError: Unexpected identifier 'bar'\n    at compileScript (node:internal/process/execution:388:10)\n\nNode.js v24.22.3\n",
    "SyntaxError: Unexpected identifier 'bar'",
  ],
  ['Node, with 8 KiB kept', () => `x\nError: deep\n    at a (/a.js:1:1)\n\nNode.js v22.1.0\n`, 'Error: deep'],
  [
    'Node, out of memory',
    () =>
      '\n<--- GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n----- Native stack trace -----\n 1: 0xb',
    'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory',
  ],
  ['Python', () => python('def pay():\n  raise ValueError("no card\\nat all")\npay()'), 'ValueError: no card'],
  [
    'Python, of another error',
    () => python('try:\n  1/0\nexcept Exception as e:\n  raise KeyError("k") from e'),
    "KeyError: 'k'",
  ],
  [
    'Python, of several errors',
    () =>
      '  + Exception Group Traceback (most recent call last):\n  |   File "x.py", line 1, in <module>\n  |     raise g\n  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | ValueError: a\n    +---------------- 2 ----------------\n    | ValueError: b\n    +------------------------------------\n',
    'ExceptionGroup: two (2 sub-exceptions)',
  ],
  [
    'Go',
    () =>
      'start\npanic: no card\n\ngoroutine 1 [running]:\nmain.pay(...)\n\t/app/main.go:4\nmain.main()\n\t/app/main.go:8 +0x27\nexit status 2\n',
    'panic: no card',
  ],
  ['a shell', () => stderrOf('sh', '-c', 'echo first >&2; cd /nowhere'), undefined],
  ['nothing', () => '', undefined],
])('a crash of %s is summed up by its error', (_, stderr, line) => {
  expect(crashOf(stderr())?.line).toBe(line);
});

test.each([
  ['Node', node('function pay() { throw new Error("x") }\npay()'), /^pay \(\[eval\]:1:24\)\n/],
  ['Python', python('def pay():\n  raise ValueError("x")\npay()'), /^pay \(<string>:2\)\n<module> \(<string>:3\)$/],
  [
    'Go',
    'panic: x\n\ngoroutine 1 [running]:\nmain.pay(0x1)\n\t/app/main.go:4 +0x1\nmain.main()\n\t/app/main.go:8 +0x27\nexit status 2',
    /^main.pay \(\/app\/main.go:4\)\nmain.main \(\/app\/main.go:8\)$/,
  ],
])('the frames of %s become the stack of the failure', (_, stderr, stack) => {
  const { line = '', frames = [] } = crashOf(stderr) ?? {};
  const error = Object.assign(new Error(line), { stack: [line, ...frames].join('\n') });
  expect(classify(error, { now: 0 }).stack).toMatch(stack);
});
