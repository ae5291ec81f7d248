// What docs/reference/reasons.md says, from the table of reasons and the policy that answers where nobody says otherwise.
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

This page lists every reason that \`classify\` and the built-in handlers give. [Classification](classification.md) says how an error gets its
reason, and how your own rules add others.

- **kind**: the usual kind of a failure with this reason. A single code may have another kind: for example, the daily quota of one service
  refills by itself, but that of another one needs a person.
- **fault**: who is at fault: the task, its source, the quota of the source, or the worker. [Who is charged](who-is-charged.md) says what
  this means for the task.
- **ambiguous**: the effect may have happened although the task failed. A task with \`idempotent: false\` then waits for a person.
- **default answer**: what \`presets.standard\` does. A rule for the reason, its family (\`fs.*\`) or its kind changes it.
`;

const ENGINE = `## Without a failure

These are reasons of decisions and tasks. No error has them.
`;

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |\n`;
  return [head, head.map(() => '---'), ...rows].map(line).join('');
}

function inWords({ kind, fault }, { maxAttempts, backoff: given, charge }, backoff) {
  if (fault === 'worker')
    return kind === 'permanent' ? 'needs a person; no charge' : `deferred, ${backoff(given)}; no charge`;
  if (kind === 'permanent') return 'ends at once';
  if (kind === 'rate_limited' && !charge) return `waits as asked, otherwise ${backoff(given)}; no charge`;
  return `${maxAttempts} attempts, ${backoff(given)}`;
}
