// The table of policy options in docs/guides/policies.md, from the table in src/failure/policy-fields.ts.
//   npm run schema
import { stringify } from 'yaml';

const TABLE = /(<!-- Options: .*? -->\n\n).*?(\n<!-- End of the options -->)/s;

/** The page with the table of options as it must be. `data` gives an option's value as it stands in a file. */
export function withOptionsTable(page, { policy, rule, data }) {
  const rows = Object.entries(policy).map(([name, { shape, says, byDefault }]) => [
    `\`${name}\``,
    takes(shape, rule),
    says,
    `\`${stringify(data(shape, byDefault), { collectionStyle: 'flow', lineWidth: 0 }).trim()}\``,
  ]);
  const extend = [
    '`extends`',
    'a policy or preset, or `none`',
    'Its values hold where this one says nothing. `none`: no rules are taken from underneath.',
    '',
  ];
  const head = ['key', 'takes', 'what', 'default'];
  const lines = [head, head.map(() => '---'), extend, ...rows].map((cells) => `| ${cells.join(' | ')} |\n`);
  return page.replace(TABLE, (_, before, after) => `${before}${lines.join('')}${after}`);
}

export function takes(shape, rule) {
  switch (shape.kind) {
    case 'whole':
      return `a whole number, at least ${shape.least}`;
    case 'span':
      return 'a duration';
    case 'limit':
      return 'a duration, or `none`';
    case 'choice':
      return shape.of.map((word) => `\`${word}\``).join(' or ');
    case 'flag':
      return '`true` or `false`';
    case 'backoff':
      return 'see below';
    case 'flags': {
      const names = Object.keys(shape.of).map((name) => `\`${name}\``);
      return `by name: ${names.join(', ')}, each \`true\` or \`false\``;
    }
    case 'jitter':
      return '`none`, `full`, `equal`, a part (`0.2`) or a percentage (`20%`)';
    case 'rules': {
      const names = Object.keys(rule).map((name) => `\`${name}\``);
      return `by name: ${names.join(', ')}`;
    }
  }
}
