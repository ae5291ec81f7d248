/**
 * A value that is still being made. On hot paths members that may be missing are assigned and not spread: a literal with
 * `...(condition && {…})` in it costs microseconds, an assignment nanoseconds. What was copied by a spread is given no members
 * that it had not: that is slow to do, and slow to read ever after.
 */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] };
