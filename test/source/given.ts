import type { Milliseconds } from '../../src/duration.ts';
import { presets } from '../../src/failure/presets.ts';
import { aged, type Memory, type Probing, type Ramping } from '../../src/source/memory.ts';
import type { Observation, Observed } from '../../src/source/observation.ts';
import { type Observing, observe } from '../../src/source/observe.ts';
import { readMemory } from '../../src/source/stored.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../failure/given.ts';

export { DAY, HOUR, MINUTE, SECOND };

/** An observation of task 1, which took no time, under the policy `standard`. */
export function seen(kind: Observed, said: Partial<Observation> = {}): Observation {
  return {
    kind,
    task: 1,
    execution: 1,
    startedAgo: 0,
    probe: false,
    drained: false,
    reason: kind === 'success' ? '' : `test.${kind}`,
    message: '',
    maxRetryAfter: presets.standard.maxRetryAfter,
    switches: presets.standard.source,
    ...said,
  };
}

/** One source whose observations come one after the other, as a store keeps it. */
export class Told {
  memory: Memory | undefined;
  last: Observing | undefined;

  /** Observes after a pause. The memory goes through its stored form, as in a store. */
  after(pause: Milliseconds, kind: Observed, said: Partial<Observation> = {}, roll = 0.5): Observing {
    const before = this.memory && aged(this.memory, pause);
    const observed = observe(before, seen(kind, said), roll);
    const { change } = observed;
    if (change) this.memory = change.memory === undefined ? undefined : readMemory(change.memory);
    else this.memory = before;
    this.last = observed;
    return observed;
  }

  get phase(): Memory['phase']['name'] {
    return this.memory?.phase.name ?? 'closed';
  }

  get probing(): Probing {
    if (this.memory?.phase.name !== 'probing') throw new Error(`It is ${this.phase}.`);
    return this.memory.phase;
  }

  get ramping(): Ramping {
    if (this.memory?.phase.name !== 'ramping') throw new Error(`It is ${this.phase}.`);
    return this.memory.phase;
  }
}

/** A source whose breaker has just opened: two tasks failed, one after the other. Its first probe comes in 5 s. */
export function down(): Told {
  const source = new Told();
  source.after(0, 'source_failure', { task: 1 });
  source.after(SECOND, 'source_failure', { task: 2 });
  return source;
}

/** A source that was down and has answered two probes. */
export function ramping(): Told {
  const source = down();
  source.after(5 * SECOND, 'success', { probe: true, task: 3 });
  source.after(0, 'success', { probe: true, task: 4 });
  return source;
}
