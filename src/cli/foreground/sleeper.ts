/** A sleep that anybody may end. A call that comes while nobody sleeps ends the next one. */
export class Nudge {
  #called = false;
  #wake = () => {};

  call(): void {
    this.#called = true;
    this.#wake();
  }

  async sleep(ms: number): Promise<void> {
    if (!this.#called) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#called = false;
  }
}
