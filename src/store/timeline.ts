import { readlinkSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { bootId } from './boot.ts';

/** Names what a clock's monotonic time is counted from, so that it can be compared with that of another process. */
export function timelineOf({ timeline }: Clock): string {
  return timeline ?? hostTimeline();
}

/** The boot and the time namespace; where they cannot be read, this process alone. */
function hostTimeline(): string {
  const boot = bootId();
  return boot === null ? `process ${process.pid} ${performance.timeOrigin}` : `${boot} ${timeNamespace()}`;
}

/** A time namespace may shift the monotonic clock. Systems without them have none. */
function timeNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/time');
  } catch {
    return '';
  }
}
