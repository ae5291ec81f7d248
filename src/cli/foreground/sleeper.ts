/** A sleep that `wake` ends early. A wake-up while nobody sleeps ends the next sleep at once. */
export class Sleeper {
  #woken = false;
  #wake = () => {};

  wake(): void {
    this.#woken = true;
    this.#wake();
  }

  async sleep(ms: number): Promise<void> {
    if (!this.#woken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#woken = false;
  }
}
