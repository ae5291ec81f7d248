import type { Json } from './task.ts';

/** A value as JSON brings it back: a Date is a text, and what JSON leaves out is not there. */
export type AsJson<T> = 0 extends 1 & T
  ? T
  : T extends Json
    ? T
    : unknown extends T
      ? unknown
      : T extends { toJSON(): infer Written }
        ? AsJson<Written>
        : T extends undefined
          ? undefined
          : T extends (...args: never[]) => unknown
            ? never
            : T extends object
              ? { [Key in keyof T]: AsJson<T[Key]> }
              : never;

/** What `T` would be if JSON could carry all of it: a Date, Map, class instance or bigint in it becomes `never`. */
type Carried<T> = 0 extends 1 & T
  ? T
  : unknown extends T
    ? T
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends bigint | symbol | ((...args: never[]) => unknown)
        ? never
        : T extends object
          ? { [Key in keyof T]: Carried<T[Key]> }
          : never;

/** What the compiler shows for an input that JSON would change. */
interface InputThatJsonWouldChange {
  readonly input: 'The input travels as JSON. Give `input` a schema that takes a text or number, such as z.codec(z.iso.datetime(), z.date(), …) for a date.';
}

/** Nothing, where JSON carries such an input unchanged; else an error of the compiler. */
export type CarriedAsJson<Given> = [Given] extends [Carried<Given>] ? unknown : InputThatJsonWouldChange;
