// What docs/reasons.md says, from the table of reasons and the policy that answers where nobody says otherwise.
//   npm run classify:docs

/** The page as Markdown. `answer` gives the default policy's answer to a reason of a kind, and `backoff` puts one in words. */
export function reasonsPage({ reasons, engineReasons, answer, backoff }) {
  const rows = Object.entries(reasons).map(([reason, info]) => [
    `\`${reason}\``,
    info.meaning,
    info.kind,
    info.fault,
    info.ambiguous ? 'yes' : '',
    inWords(info, answer(reason, info.kind), backoff),
    info.traps ?? '',
  ]);
  const head = ['reason', 'meaning', 'kind', 'fault', 'ambiguous', 'default answer', 'traps'];
  const engineRows = Object.entries(engineReasons).map(([reason, { meaning, answered }]) => [
    `\`${reason}\``,
    meaning,
    answered ? 'yes' : '',
  ]);
  return `${INTRODUCTION}\n${table(head, rows)}\n${ENGINE}\n${table(['reason', 'meaning', 'a rule may name it'], engineRows)}`;
}

const INTRODUCTION = `# Reasons

<!-- Made by \`npm run classify:docs\` from src/failure/classify/reasons.ts. Change it there. -->

Every reason that \`classify\` and the handlers of Holdfast give, whatever library the error came from. [Classification](classification.md) tells how an
error gets one, and how rules of your own give others.

- **kind**: how such a failure behaves when the same task runs again. A rule may know better for one code: the day's quota of one
  service fills again, that of another waits for a person. Then the failure has that kind.
- **fault**: who caused it, and so who pays: the task, the source that it touches, that source's quota, or the worker.
- **ambiguous**: the effect may have happened. A task with \`idempotent: false\` then waits for a person.
- **default answer**: what \`presets.standard\` does. A rule for the reason, its family (\`fs.*\`) or its kind changes it.
`;

const ENGINE = `## Without a failure

These stand in decisions and with tasks, and no error has them.
`;

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return [head, head.map(() => '---'), ...rows].map(line).join('');
}

function inWords({ kind, fault }, { maxAttempts, backoff: given, charge }, backoff) {
  if (fault === 'worker')
    return kind === 'permanent' ? 'needs a person; nobody is charged' : `put off, ${backoff(given)}; nobody is charged`;
  if (kind === 'permanent') return 'ends at once';
  if (kind === 'rate_limited' && !charge) return `waits as asked, else ${backoff(given)}; nobody is charged`;
  return `${maxAttempts} attempts, ${backoff(given)}`;
}
