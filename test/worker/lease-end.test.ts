import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import { LeaseEnd } from '../../src/worker/lease-end.ts';

const LEASE_MS = 3_000;
const PATIENCE_MS = 1_000;

/** A lease that was renewed now, and how often it has ended and was to be renewed. */
function aLease(clock: VirtualClock) {
  const seen = { ended: 0, renewals: 0, failingSince: undefined as number | undefined };
  const end = new LeaseEnd({
    clock,
    lastRenewalTimeout: PATIENCE_MS,
    failingSince: () => seen.failingSince,
    renew: async () => {
      seen.renewals += 1;
    },
    onEnd: () => {
      seen.ended += 1;
    },
  });
  end.noteRenewal(clock.monotonic(), LEASE_MS);
  return { seen, end };
}

describe('the end of a lease', () => {
  test('comes at once where renewals have failed for a while', () => {
    const clock = new VirtualClock(new Date(0));
    const { seen } = aLease(clock);
    seen.failingSince = LEASE_MS / 3;
    clock.moveTo(LEASE_MS);
    expect(seen).toMatchObject({ ended: 1, renewals: 0 });
  });

  test('waits for a renewal that was asked for just before it, as by a process that was frozen', () => {
    const clock = new VirtualClock(new Date(0));
    const { seen, end } = aLease(clock);
    seen.failingSince = LEASE_MS;
    clock.moveTo(LEASE_MS);
    expect(seen).toMatchObject({ ended: 0, renewals: 1 });
    end.noteRenewal(LEASE_MS, LEASE_MS);
    clock.moveTo(LEASE_MS + PATIENCE_MS);
    expect(seen.ended).toBe(0);
  });

  test('comes after one renewal without an answer where none was tried in time', () => {
    const clock = new VirtualClock(new Date(0));
    const { seen } = aLease(clock);
    clock.moveTo(LEASE_MS);
    expect(seen).toMatchObject({ ended: 0, renewals: 1 });
    clock.moveTo(LEASE_MS + PATIENCE_MS);
    expect(seen.ended).toBe(1);
  });
});
