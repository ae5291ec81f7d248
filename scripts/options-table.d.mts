import type { Field, Shape } from '../src/failure/policy-fields.ts';

type Fields = Readonly<Record<string, Field<unknown>>>;

export function withOptionsTable(
  page: string,
  of: {
    readonly policy: Fields;
    readonly rule: Fields;
    readonly data: (shape: Shape, value: unknown) => unknown;
  },
): string;
