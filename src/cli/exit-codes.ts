/** The exit codes of commands. Only `run` is different: it ends with the exit code of its command if that failed, see `run --help`. */
export const EXIT = {
  done: 0,
  /** A task is dead or was cancelled, or Holdfast itself failed. */
  failed: 1,
  usage: 2,
  notFound: 3,
  needsPerson: 4,
  conflict: 5,
  invalidConfig: 6,
  store: 7,
  unhealthy: 8,
  notPermitted: 9,
  notFinished: 75,
  /** Ctrl-C, before all was done. */
  interrupted: 130,
  /** `worker` was started with values that it cannot use; systemd's `RestartPreventExitStatus=78` is for this. */
  badConfig: 78,
  /** `run` could not do its own part: 126 and 127 are its command's. */
  runFailed: 125,
} as const;

/** For `--help`, in the order of the numbers. */
export const EXIT_TABLE: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'done, or already done'],
  ['1', 'the work did not succeed: a task is dead or cancelled'],
  ['2', 'usage: a flag, argument or filter'],
  ['3', 'not found'],
  ['4', 'a task needs a person'],
  ['5', 'the state of a task does not allow it'],
  ['6', 'the configuration is refused'],
  ['7', 'the store is missing, locked, full, corrupt or unreachable'],
  ['8', 'status --check or doctor found something'],
  ['9', 'not permitted, or read-only'],
  ['75', 'not finished yet: detached, or --timeout is over'],
  ['130, 143', 'interrupted before anything was recorded'],
];
