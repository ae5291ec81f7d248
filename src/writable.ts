/**
 * A value that is still being built. On hot paths, optional members are assigned and not spread: a literal with
 * `...(condition && {…})` costs microseconds, an assignment nanoseconds. Do not add new members to a copy that was made by a
 * spread: that is slow, and reading the object stays slow.
 */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] };
