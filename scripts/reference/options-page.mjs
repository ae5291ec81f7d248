// The page docs/reference/options.md: every option of every function, from the interfaces of the source and from what the functions
// answer. The error after an option is what the function really throws.
import { membersOf } from './interfaces.mjs';

const BEGIN = `# Every option

<!-- Made by \`npm run reference\` from the comments in src and from what the functions answer. Change them there. -->

Each option has its shape, its default, what it does, and the error that a wrong value gets. Errors are thrown when the function is called,
before anything is stored. An option with another name than these is refused too, with the nearest name. Options of
\`holdfast.yaml\` are in [policies.md](POLICIES) and in its JSON Schema, those of commands in \`holdfast COMMAND --help\`.

- A duration is a text with units: \`'90s'\`, \`'5m'\`, \`'1h30m'\`, \`'7d'\`, \`'250ms'\`. A bare number is refused.
- A pace is a number of starts in a time: \`'10/s'\`, \`'5000/h'\`, \`'100/15m'\`, or \`{ rate: '10/s', burst: 5 }\`.
- A name, such as a queue, has 1 to 255 characters, and no control characters.
`;

/**
 * @param {readonly object[]} sections of options-sections.mjs.
 * @param {object} policies the tables of src/failure/policy-fields.ts, and how a shape and a default are written.
 * @param {object} also the address of docs/guides/policies.md from this page, and the texts that types allow.
 */
export async function optionsPage(sections, policies, { policiesPage, words }) {
  const parts = [BEGIN.replace('POLICIES', policiesPage)];
  for (const section of sections) parts.push(await sectionText({ ...section, words }));
  parts.push(policyText(policies));
  return `${parts
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trimEnd()}\n`;
}

async function sectionText(section) {
  const { title, says, from, call, known } = section;
  const members = uniqueByName(from.flatMap(([file, name]) => membersOf(file, name)));
  const undescribed = members.filter((member) => member.says === '').map(({ name }) => name);
  if (undescribed.length > 0) throw new Error(`No comment describes these options of ${title}: ${undescribed.join()}.`);
  const unlike = difference(known ?? (await namesKnownTo(call)), members);
  if (unlike.length > 0) throw new Error(`${title}: the types and the check differ in ${unlike.join()}.`);
  const options = [];
  for (const member of members) options.push(await optionText(member, section));
  return `## ${title}\n\n${says}\n\n${options.join('\n')}`;
}

/** A type with two forms has most options in both. */
function uniqueByName(members) {
  return members.filter((member, i) => members.findIndex(({ name }) => name === member.name) === i);
}

function difference(known, members) {
  const names = new Set(members.map(({ name }) => name));
  return [...known.filter((name) => !names.has(name)), ...[...names].filter((name) => !known.includes(name))];
}

/** The names in the answer to an unknown option. */
async function namesKnownTo(call) {
  const said = await errorOf(() => call({ noSuchOption: true }));
  const [, names] = /It has: (.*?)\.(?: |$)/s.exec(said?.message ?? '') ?? [];
  if (names === undefined) throw new Error(`An unknown option was answered with: ${said?.message}`);
  return names.split(', ');
}

async function optionText({ name, optional, type, says }, { call, unchecked = [], words = {} }) {
  const byDefault = /(?:^|(?<=[.)] ))Default:? .*?[.](?= |$)/.exec(says)?.[0] ?? '';
  const rest = says.replace(byDefault, '').replace(/ {2,}/g, ' ').trim();
  const head = `${shapeOf(type, words)}, ${optional ? 'optional' : 'required'}.${byDefault === '' ? '' : ` ${byDefault}`}`;
  const error = unchecked.includes(name) ? undefined : await exampleOf(name, type, call);
  return ['### `NAME`'.replace('NAME', name), head, rest, error]
    .filter(Boolean)
    .map((part) => `${part}\n`)
    .join('\n');
}

/** A wrong value and what it gets. */
async function exampleOf(name, type, call) {
  for (const wrong of wrongFor(type)) {
    const error = await errorOf(() => call({ [name]: wrong.value }));
    if (error) return `\`\`\`text\n${name}: ${wrong.written}   → ${error.name} ${error.code}\n${error.message}\n\`\`\``;
  }
  throw new Error(`No wrong value of ${name} (${type}) is refused.`);
}

function wrongFor(type) {
  const value = (written) => ({ written, value: new Function(`return ${written}`)() });
  if (/^\(/.test(type)) return [value('7')];
  if (/DurationInput|KeepForInput/.test(type)) return [value("'soon'"), value('30')];
  if (/\bDate\b/.test(type)) return [value("'tomorrow'"), value('7')];
  if (/^readonly /.test(type)) return [value("'mail'"), value('7'), value('[7]')];
  if (/number|Milliseconds/.test(type)) return [value('-1'), value("'many'")];
  if (/boolean/.test(type)) return [value("'yes'")];
  return [value("'x'"), value('7'), value("''"), value('true')];
}

async function errorOf(act) {
  try {
    await act();
  } catch (error) {
    if (error.code === undefined || !/^[a-z_]+$/.test(error.code)) throw error;
    return error;
  }
}

/** The words for a type. Others are shown as they are. */
const SHAPES = {
  DurationInput: 'A duration',
  Milliseconds: 'A number of milliseconds',
  KeepForInput: "A duration, or `'never'`",
  PaceInput: 'A pace',
  number: 'A number',
  string: 'A text',
  boolean: '`true` or `false`',
  Date: 'A `Date`',
  unknown: 'Any JSON value',
  Given: 'Any JSON value',
};

/** `words`: the texts that a type allows, by its name. */
function shapeOf(type, words) {
  if (/^\(\w+: .*\) =>/.test(type)) return `A function \`${type}\``;
  const parts = type.split(/ \| (?![^(]*\))/).map((part) => {
    return words[part]?.map((word) => `\`'${word}'\``).join(', ') ?? SHAPES[part] ?? severalOf(part) ?? `\`${part}\``;
  });
  return parts.map((part, i) => (i === 0 ? part : part.replace(/^A /, 'a '))).join(' or ');
}

function severalOf(type) {
  const [, member] = /^readonly (\w+)\[\]$/.exec(type) ?? [];
  const [, named] = /^Readonly<Record<string, (\w+)>>$/.exec(type) ?? [];
  if (member) return `A list of ${member === 'string' ? 'texts' : member === 'number' ? 'numbers' : `\`${member}\``}`;
  return named && `An object of \`${named}\` by name`;
}

function policyText({ policy, rule, takes, data }) {
  const written = (shape, value) => data(shape, value);
  const option = ([name, { shape, says, byDefault }]) => {
    const inRules = name in rule ? ' Also in a rule.' : '';
    const head = `${takes(shape, rule)}. Default \`${written(shape, byDefault)}\`.${inRules}`;
    return `### \`${name}\`\n\n${head[0].toUpperCase()}${head.slice(1)}\n\n${says}\n`;
  };
  const says =
    'The options of a policy: `retry` of `defineTask`, of `enqueue` and of a schedule. In `holdfast.yaml` they are written in snake_case. A wrong ' +
    'value gets InvalidInputError `invalid_policy` with what to write instead.';
  return `## retry: the policy\n\n${says}\n\n${Object.entries(policy).map(option).join('\n')}`;
}
