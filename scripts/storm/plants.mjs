// Bugs to plant in a copy of dist, each with the promise that a storm must then find broken. They stand at the heads of functions,
// so that what a function does may change without them.
const at = (name) => new RegExp(`((?:function|async) ${name}\\([^\\n]*\\) \\{)`);
const first = (statement) => `$1 ${statement}`;

export const PLANTS = {
  'acknowledges-too-early': {
    what: 'one of fifty enqueues is acknowledged and not written',
    promise: 'no acknowledged task is lost',
    patches: [
      {
        file: 'queue/holdfast.js',
        find: 'this.store.tasks.enqueue(tasks)',
        replace: `(Math.random() < 0.02
          ? Promise.resolve(tasks.map(() => ({ id: 1e7 + Math.floor(Math.random() * 1e6), created: true })))
          : this.store.tasks.enqueue(tasks))`,
      },
    ],
  },
  'robs-the-living': {
    what: 'a process that lives is now and then taken for dead',
    promise: 'no task ran twice at once',
    patches: [
      {
        file: 'store/liveness.js',
        find: at('livenessOf'),
        replace: first("if (Math.random() < 0.2) return 'dead';"),
      },
    ],
  },
  'charges-innocents': {
    what: 'each task that was lost with its worker is charged a recovery',
    promise: 'no task is charged for what it did not do',
    patches: [
      {
        file: 'failure/decide.js',
        find: at('judgeLoss'),
        replace: first(`return again(open, 0, { to: 'recoveries' }, 'recovery', 'planted');`),
      },
    ],
  },
  'charges-a-stop': {
    what: 'a task that a stopping worker hands back is charged an attempt',
    promise: 'no task is charged for what it did not do',
    patches: [
      {
        file: 'failure/decide.js',
        find: at('judgeInterruption'),
        replace: first(
          `return again(open, 0, { to: 'task', reason: 'worker.interrupted', kind: 'unknown' }, 'retry', 'planted');`,
        ),
      },
    ],
  },
  'accuses-neighbours': {
    what: 'whatever is lost with its worker is a crash loop',
    promise: 'only a task that kills its worker ends as a crash loop',
    patches: [
      {
        file: 'failure/decide.js',
        find: at('judgeLoss'),
        replace: first(
          `return end({ ...open, reason: 'worker.crash_loop' }, 'needs_manual', { to: 'nobody' }, 'crash_loop', 'planted');`,
        ),
      },
    ],
  },
  'runs-twice': {
    what: 'what must not run twice does',
    promise: 'no task that must not run twice did',
    patches: [{ file: 'failure/decide.js', find: at('mustNotRunTwice'), replace: first('return false;') }],
  },
  'forgets-the-lost': {
    what: 'what a dead worker ran is recovered by nobody',
    promise: 'no task is stuck',
    patches: [{ file: 'worker/recovery.js', find: at('recover'), replace: first('return 0;') }],
  },
  'cancels-another': {
    what: 'an operator who cancels a task cancels the one before it',
    promise: 'each end has its cause',
    patches: [{ file: 'queue/holdfast.js', find: at('cancel'), replace: first('id = Math.max(1, id - 1);') }],
  },
};
