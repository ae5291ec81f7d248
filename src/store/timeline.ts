import { readlinkSync } from 'node:fs';
import type { Clock } from '../clock.ts';
import { bootId } from './boot.ts';

/** Names the start from which a clock's monotonic time is counted. Processes with the same name can compare their times. */
export function timelineOf({ timeline }: Clock): string {
  return timeline ?? hostTimeline();
}

/** The boot and the time namespace; if they cannot be read, a name only for this process. */
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
