// Reads the options of functions from the interfaces of the source: names, types, and the comment of each.
import { readFileSync } from 'node:fs';
import { parseSync } from 'rolldown/utils';

/**
 * The members of an interface, with those that it extends; its own come first.
 * @param {string} file of the source, such as `queue/enqueue.ts`.
 */
export function membersOf(file, name) {
  const source = readFileSync(new URL(`../../src/${file}`, import.meta.url), 'utf8');
  const { program, comments } = parseSync(file, source);
  const declared = declarationOf(program, name);
  if (declared === undefined) throw new Error(`src/${file} has no interface ${name}.`);
  const own = signaturesOf(declared).map((member) => ({
    name: member.key.name,
    optional: member.optional,
    type: typeOf(member, source),
    says: commentBefore(member, comments, source),
  }));
  const inherited = (declared.extends ?? []).flatMap((base) => inheritedFrom(base, { file, program, source }));
  return [...own, ...inherited.filter(({ name }) => !own.some((member) => member.name === name))];
}

function declarationOf(program, name) {
  return program.body
    .map((node) => node.declaration ?? node)
    .find(({ type, id }) => /^TS(Interface|TypeAlias)Declaration$/.test(type) && id.name === name);
}

function signaturesOf({ body, typeAnnotation }) {
  // A type of several objects: their members that have names.
  const parts = body ? [body] : (typeAnnotation.types ?? [typeAnnotation]);
  const all = parts.flatMap((part) => part.body ?? part.members ?? []);
  return all.filter(({ type }) => type === 'TSPropertySignature' || type === 'TSMethodSignature');
}

function typeOf(member, source) {
  const text =
    member.type === 'TSMethodSignature'
      ? `${textOf(member.params, source)} => ${textOf(member.returnType.typeAnnotation, source)}`
      : textOf(member.typeAnnotation.typeAnnotation, source);
  return text.replace(/\s+/g, ' ');
}

function textOf(node, source) {
  if (Array.isArray(node)) return `(${node.map((one) => textOf(one, source)).join(', ')})`;
  return source.slice(node.start, node.end);
}

/** The comment before the member. Comments for the linter may stand between them. */
function commentBefore(member, comments, source) {
  const comment = comments.findLast(({ end, value }) => end <= member.start && value.startsWith('*'));
  if (comment === undefined) return '';
  const between = source.slice(comment.end, member.start).replace(/\/\/.*/g, '');
  return between.trim() === '' ? plain(comment.value) : '';
}

function plain(comment) {
  return comment
    .replace(/^\*/, '')
    .replace(/^\s*\* ?/gm, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/** `Other`, `Pick<Other, 'a' | 'b'>` or `Omit<Other, 'a' | keyof Third>`. */
function inheritedFrom({ expression, typeArguments }, context) {
  const members = (name) => membersOf(fileOf(name, context), name);
  if (!['Pick', 'Omit'].includes(expression.name)) return members(expression.name);
  const [base, keys] = typeArguments.params;
  const named = (keys.types ?? [keys]).flatMap((key) =>
    key.type === 'TSTypeOperator'
      ? members(key.typeAnnotation.typeName.name).map(({ name }) => name)
      : [key.literal.value],
  );
  return members(base.typeName.name).filter(({ name }) => named.includes(name) === (expression.name === 'Pick'));
}

/** The file that declares a type: this one, or the one from which it is imported. */
function fileOf(name, { file, program }) {
  const imported = program.body.find(
    (node) => node.type === 'ImportDeclaration' && node.specifiers.some(({ local }) => local.name === name),
  );
  return imported ? new URL(imported.source.value, `file:///${file}`).pathname.slice(1) : file;
}
