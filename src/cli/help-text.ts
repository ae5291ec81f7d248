/** The width of help, also in a pipe. */
export const HELP_COLUMNS = 80;

/** A line of at least so many characters was broken for its length, so the next one goes on with it. */
const BROKEN_FROM = 95;

/** A term with its meaning in a second column. */
const TERM = /^( *\S.*?\s{2,})\S/;
const WIDEST_TERM = 36;

/** The text of a help in lines of at most 80 characters. What stands in a second column goes on there. */
export function wrapHelp(text: string): string {
  return joined(text.split('\n')).flatMap(wrapLine).join('\n');
}

/** Lines of one paragraph become one line. */
function joined(lines: readonly string[]): string[] {
  const found: string[] = [];
  let goesOn = false;
  for (const line of lines) {
    const isNext = goesOn && line !== '' && !line.startsWith(' ') && !TERM.test(line);
    if (isNext) found.push(`${found.pop()} ${line}`);
    else found.push(line);
    goesOn = line.length >= BROKEN_FROM && !line.startsWith(' ');
  }
  return found;
}

function wrapLine(line: string): string[] {
  if (line.length <= HELP_COLUMNS) return [line];
  const term = TERM.exec(line)?.[1]?.length ?? Number.POSITIVE_INFINITY;
  const indent = ' '.repeat(term <= WIDEST_TERM ? term : line.length - line.trimStart().length);
  const lines: string[] = [];
  for (let rest = line; rest !== ''; ) {
    const space = rest.length <= HELP_COLUMNS ? -1 : rest.lastIndexOf(' ', HELP_COLUMNS);
    const end = space <= indent.length ? rest.indexOf(' ', HELP_COLUMNS) : space;
    if (rest.length <= HELP_COLUMNS || end < 0) return [...lines, rest];
    lines.push(rest.slice(0, end).trimEnd());
    const left = rest.slice(end).trimStart();
    rest = left === '' ? '' : `${indent}${left}`;
  }
  return lines;
}
