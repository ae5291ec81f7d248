/** Writes commands to type next, with the flags that name the store. */
export interface CommandLine {
  /** `holdfast show 12` for `show 12`. */
  command(words: string): string;
  /** Whoever reads may not see what tasks work with: no text names members of their inputs. */
  readonly hidesInputs?: boolean;
}
