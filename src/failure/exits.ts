import type { Reason } from './classify/reasons.ts';

/** What exit codes mean by convention: sysexits.h, timeout(1), the shell's 126, 127 and 128 + the number of a signal. */
const EXIT_CODES: Readonly<Record<number, Reason>> = {
  64: 'process.usage',
  75: 'process.tempfail',
  78: 'process.usage',
  124: 'timeout',
  126: 'process.not_executable',
  127: 'process.not_found',
  129: 'process.killed',
  130: 'process.killed',
  131: 'process.killed',
  132: 'process.crashed',
  133: 'process.crashed',
  134: 'process.crashed',
  135: 'process.crashed',
  136: 'process.crashed',
  137: 'process.killed',
  139: 'process.crashed',
  141: 'process.killed',
  143: 'process.killed',
  // cmd.exe: no such command.
  9009: 'process.not_found',
  // Windows status codes: access violation, stack overflow, heap corruption, fast fail, Ctrl+C.
  3221225477: 'process.crashed',
  3221225725: 'process.crashed',
  3221226356: 'process.crashed',
  3221226505: 'process.crashed',
  3221225786: 'process.killed',
};

/** Signals that the system sends to a program that crashed. All others are sent by other programs. */
const CRASHES: readonly string[] = ['SIGSEGV', 'SIGABRT', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS', 'SIGIOT'];

/** The reason for an exit code; `process.exit` for one without a common meaning. */
export function reasonOfExit(code: number): Reason {
  return EXIT_CODES[code] ?? 'process.exit';
}

/** The reason for the signal that ended a program, such as `SIGKILL`. */
export function reasonOfSignal(signal: string): Reason {
  return CRASHES.includes(signal) ? 'process.crashed' : 'process.killed';
}
