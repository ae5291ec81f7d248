/** Writes commands to type next, with the flags that name the store. */
export interface CommandLine {
  /** `holdfast show 12` for `show 12`. */
  command(words: string): string;
}
