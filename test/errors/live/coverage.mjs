// What COVERAGE.md says: which kinds of failure are provoked from which library.
import { readFileSync } from 'node:fs';

export const PAGE = new URL('COVERAGE.md', import.meta.url);
const KINDS = ['transient', 'rate_limited', 'permanent', 'unknown'];
const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));

export function coverage(groups) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const head = ['library', 'version', 'cases', ...KINDS];
  const parts = Object.entries(groups).map(([group, libraries]) => {
    const rows = libraries.map(({ name, cases }) => [
      name,
      versionOf(name),
      cases.length,
      ...KINDS.map((kind) => reasonsOf(cases.filter(({ expected }) => expected[0].kind === kind))),
    ]);
    return `## ${group[0].toUpperCase()}${group.slice(1)}\n\n${[head, head.map(() => '---'), ...rows].map(line).join('\n')}\n`;
  });
  return `${INTRODUCTION}\n${parts.join('\n')}`;
}

const INTRODUCTION = `# What is provoked

<!-- Made by \`npm run errors:live -- --update\`. -->

Each library with the reasons, by kind, that its errors must get. Where several are accepted, the first is listed.
`;

function reasonsOf(cases) {
  return [...new Set(cases.map(({ expected }) => `\`${expected[0].reason}\``))].sort().join(' ');
}

/** The package that a name such as \`zod 3\` or \`@connectrpc/connect, over HTTP\` stands for. */
function versionOf(name) {
  const known = name.replace(/,? .*$/, '');
  return dependencies[known] ?? '';
}
