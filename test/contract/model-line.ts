/** What a line needs to know of a task that may be claimed. */
export interface InLine {
  readonly id: number;
  readonly lostInARow: number;
  readonly needsToken: boolean;
  readonly given: { readonly source: string };
}

/** What the sources of a queue let start in a claim. */
export interface ClaimCaps {
  mayTake(task: InLine): boolean;
  /** Counts it, if it may be taken. */
  take(task: InLine): boolean;
  isRamping(source: string): boolean;
}

/** When a source was served last, or came: between these two numbers of services. */
interface Turn {
  readonly least: number;
  readonly most: number;
}

/** The sources of a fair queue, in turn: who was served longest ago comes first, and who is new goes to the back. */
export class ModelLine {
  readonly #turns = new Map<string, Turn>();
  #served = 0;

  /** A source has a ready task. One that was seen before keeps its place. */
  see(source: string): void {
    const { least, most } = this.#turns.get(source) ?? { least: this.#served + 0.5, most: Number.POSITIVE_INFINITY };
    this.#turns.set(source, { least, most: Math.min(most, this.#served + 0.5) });
  }

  /** A source that was not seen may be by now, or later. */
  maySee(source: string): void {
    if (this.#turns.has(source)) return;
    this.#turns.set(source, { least: this.#served + 0.5, most: Number.POSITIVE_INFINITY });
  }

  /** What was wrong with a claim that gave these of those that were open, each source's in their order; notes the turns. */
  objectionsTo(
    got: readonly number[],
    open: readonly InLine[],
    { suspects, alone }: { readonly suspects: number; readonly alone: boolean },
    isOrdered: boolean,
    caps: ClaimCaps,
  ): string[] {
    const objections: string[] = [];
    let left = [...open];
    let mayTake = suspects;
    for (const id of got) {
      const admitted = left.filter(({ lostInARow }) => lostInARow === 0 || (lostInARow === 1 ? mayTake > 0 : alone));
      const next = admitted.filter((task) => caps.mayTake(task));
      const task = next.find((one) => one.id === id);
      if (!task) return [...objections, `#${id} was given which was not to be given`];
      const { source } = task.given;
      const first = next.find(({ given }) => given.source === source);
      if (isOrdered && first !== task && !caps.isRamping(source))
        objections.push(`#${id} was given before #${first?.id}, both of ${source}`);
      const turn = this.#turns.get(source) as Turn;
      const before = next.find(({ given }) => (this.#turns.get(given.source) as Turn).most < turn.least);
      if (before) objections.push(`${source} was served before ${before.given.source}, whose turn it was`);
      this.#served += 1;
      this.#turns.set(source, { least: this.#served, most: this.#served });
      caps.take(task);
      left = left.filter((one) => one !== task);
      if (task.lostInARow === 1) mayTake -= 1;
    }
    return objections;
  }
}
