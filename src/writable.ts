/**
 * A value that is still being made. On hot paths members that may be missing are assigned and not spread: a literal with
 * `...(condition && {…})` in it costs microseconds, an assignment nanoseconds.
 */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] };
