/** Control characters, separators of lines, marks that turn the writing round, and invisible tags. */
const UNSAFE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': ' ' };

/**
 * Text of a task as one line that a terminal may show: what would move the cursor, set the title or turn the writing round is
 * spelled out as `\x1b`. Everything that a task, its command or another machine said goes through here before it is printed.
 */
export function visible(text: string): string {
  return text.replace(UNSAFE, (character) => SHORT[character] ?? spelled(character));
}

/** JSON on one line in which all that `visible` spells out is escaped, so that a terminal may show it, and it means the same. */
export function visibleJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}

/** What sets a colour or a weight. Not what hides (8), and nothing that is spelled in any other way. */
const COLOUR = String.raw`\u001b\[(?:;|(?:0?[0-79]|2[1-9]|3[0-79]|4[0-79]|9[0-7]|10[0-7]|[34]8;(?:5|2;\d{1,3};\d{1,3});\d{1,3})(?=[;m]))*m`;
const UNSAFE_BUT_LINES = new RegExp(`${COLOUR}|(?![\\n\\r\\t])${UNSAFE.source}`, 'gu');

/**
 * What a task printed, as lines that a terminal may show: colours pass, and end with it; everything else that it would obey is
 * spelled out as by `visible`. Without `colour` they are left out.
 */
export function visibleOutput(text: string, colour: boolean): string {
  let coloured = false;
  const shown = text.replace(UNSAFE_BUT_LINES, (found) => {
    if (found.length < 3) return spelled(found);
    coloured = !/^.\[0*m$/s.test(found);
    return colour ? found : '';
  });
  return colour && coloured ? shown.replace(/\n?$/, (end) => `\u001b[0m${end}`) : shown;
}

/** An error in a list has at most 200 characters; `show` has all of it. */
const LONGEST_IN_LIST = 200;

export function shortened(text: string, longest = LONGEST_IN_LIST): string {
  return text.length > longest ? `${text.slice(0, longest - 1).toWellFormed()}…` : text;
}

/** The lines of a text, each made visible. A final line end makes no empty line. */
export function visibleLines(text: string): string[] {
  return text
    .replace(/\r?\n$/, '')
    .split(/\r?\n/)
    .map(visible);
}

/** One argument as a person would type it in a shell: quoted where it needs to be. */
export function quoted(argument: string): string {
  const shown = visible(argument);
  return /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`;
}

function spelled(character: string): string {
  const code = character.codePointAt(0) as number;
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`;
}
