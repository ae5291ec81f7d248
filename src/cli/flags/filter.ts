/**
 * The filter in the arguments of a command. A shell removes quotes, so an argument such as `error:timed out` is one term, unless
 * what looks like another term follows in it.
 */
export function filterFrom(args: readonly string[]): string {
  return args.map(requoted).join(' ');
}

function requoted(arg: string): string {
  const [, key, value = ''] = /^(-?[a-z]+:)([^"]*\s[^"]*)$/.exec(arg.trim()) ?? [];
  if (key === undefined || /\s-?[a-z]+:\S/.test(value)) return arg;
  return `${key}"${value.trim().replaceAll('\\', '\\\\')}"`;
}

/** For the help of the commands that take a filter. */
export const FILTER_HELP = `A filter is terms such as state:dead,needs_manual type:sync queue:default 'source:imap:*' 'reason:http.*' since:2h
'error:"timed out"'. A space joins terms by AND, a comma joins values by OR, and a minus excludes: 'state:dead -type:report'.
  *       any text, in names without quotes; a value with spaces is quoted: 'source:"fs:/mnt/my nas"'
  error   a part of the last error; fingerprint: the same sort of failure, as the history names it
  attempts, executions, priority   a number: attempts:3, attempts:3..5, attempts:3.., or in quotes 'attempts:>=3'
  since, until   when it ended, was put aside or began to wait for a person: 2h (so long ago), 14:30, yesterday 9:00, 2026-01-31`;
