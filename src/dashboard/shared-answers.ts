/**
 * Answers questions that are asked while the same is being answered: a hint reaches all open pages at once, and then each asks for the
 * same. One look at the store answers them all. What is asked after an act is looked up again.
 */
export class SharedAnswers {
  readonly #awaited = new Map<string, Promise<string>>();

  /** `question`: all that the answer depends on. */
  to(question: string, answer: () => Promise<string>): Promise<string> {
    const awaited = this.#awaited.get(question);
    if (awaited) return awaited;
    const own = answer().finally(() => {
      if (this.#awaited.get(question) === own) this.#awaited.delete(question);
    });
    this.#awaited.set(question, own);
    return own;
  }

  /** After something was changed: what is being answered may be older than that. */
  forget(): void {
    this.#awaited.clear();
  }
}
