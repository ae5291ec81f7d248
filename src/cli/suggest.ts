/** What people type for what they mean, where the letters do not give it away. */
const INTENTS: Readonly<Record<string, string>> = {
  restart: 'retry (due now; a new round if it had ended)',
  rerun: 'retry (due now; a new round if it had ended)',
  redo: 'retry (due now; a new round if it had ended)',
  redrive: 'retry ID…, with the ids from: holdfast list state:dead --ids',
  requeue: 'retry (due now; a new round if it had ended)',
  rm: 'cancel (a task that waits or runs ends; its history stays)',
  remove: 'cancel (a task that waits or runs ends; its history stays)',
  delete: 'cancel (a task that waits or runs ends; its history stays)',
  del: 'cancel (a task that waits or runs ends; its history stays)',
  kill: 'cancel',
  stop: 'cancel (for one task), or hold (to put it aside)',
  abort: 'cancel',
  pause: 'hold (tasks), sources hold, or queues pause',
  suspend: 'hold',
  stash: 'hold',
  unpause: 'release (tasks), sources release, or queues resume',
  unhold: 'release',
  continue: 'resume (work it here), or release (after hold)',
  start: 'worker (work everything), or resume (work some tasks here)',
  work: 'worker (work everything), or resume (work some tasks here)',
  daemon: 'worker',
  serve: 'worker',
  ps: 'list state:running',
  jobs: 'list',
  tasks: 'list',
  queue: 'list, or queues',
  connectors: 'sources',
  connector: 'sources',
  stats: 'status',
  top: 'status',
  info: 'show',
  inspect: 'show',
  describe: 'show',
  explain: 'show',
  log: 'logs',
  output: 'logs',
  tail: 'logs ID -f',
  history: 'show',
  exec: 'run -- CMD…',
  curl: 'http METHOD URL',
  fetch: 'http METHOD URL',
  post: 'http POST URL',
  request: 'http METHOD URL',
  webhook: 'http POST URL',
  add: 'run -- CMD…',
  enqueue: 'run -- CMD…',
  submit: 'run -- CMD…',
  move: 'mv',
  rename: 'mv',
  answer: 'resolve',
  decide: 'resolve',
  fix: 'resolve',
  follow: 'logs ID -f (what it prints), or wait (its end)',
};

/** What a person may have meant by a word that is no command: by intent first, then by its letters. */
export function commandsLike(word: string, commands: readonly string[]): string[] {
  const key = word.toLowerCase();
  const meant = Object.hasOwn(INTENTS, key) ? INTENTS[key] : undefined;
  return meant === undefined ? nearest(word, commands) : [meant];
}

/** The words that are a slip of the finger away, or that it begins: at most two edits, one for short words. Only the nearest. */
export function nearest(word: string, known: readonly string[]): string[] {
  const typed = word.toLowerCase();
  const limit = typed.length <= 3 ? 1 : 2;
  const near = known
    .map((each) => ({ each, edits: typed.length >= 3 && each.startsWith(typed) ? 1 : editsBetween(typed, each) }))
    .filter(({ edits }) => edits <= limit);
  const least = Math.min(...near.map(({ edits }) => edits));
  return near.filter(({ edits }) => edits === least).map(({ each }) => each);
}

/** Insertions, deletions, replacements and swaps of neighbours that lead from one word to the other. */
function editsBetween(a: string, b: string): number {
  let [beforeLast, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + same,
        swapped ? (beforeLast[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] as number;
}
