import { computed, signal } from '@preact/signals';

/** How the page learns of changes. `paused`: a person stopped it, and the page stands still. */
export type LiveState = 'live' | 'polling' | 'paused';

const POLL_EVERY = 5_000;
/** The server may say that something changed many times a second; a page asks again at most so often. */
const AT_MOST_EVERY = 1_000;
const HIDDEN_FOR = 60_000;
const RECONNECT_AFTER = 30_000;

/** Grows whenever what is shown may be old. */
export const changes = signal(0);
/** How many changes came while the page is paused. */
export const missed = signal(0);
const paused = signal(false);
const streaming = signal(false);

export const liveState = computed<LiveState>(() => {
  if (paused.value) return 'paused';
  return streaming.value ? 'live' : 'polling';
});

let source: EventSource | undefined;
let failures = 0;
let lastAt = 0;
/** Whether the next hint is told later. */
let waits = false;

/**
 * Follows the hints of the server. Without a stream the page asks every few seconds. A page that nobody looks at for a minute
 * closes its stream, because a browser has only six connections to one server.
 */
export function followChanges(): void {
  connect();
  setInterval(() => {
    if (!streaming.value && !document.hidden) tell();
  }, POLL_EVERY);
  let hidden: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) hidden = setTimeout(disconnect, HIDDEN_FOR);
    else if (!source) {
      connect();
      tell();
    }
  });
}

export function pauseOrResume(): void {
  paused.value = !paused.value;
  if (!paused.value) showMissed();
}

/** Shows what changed meanwhile, and stays paused if it is. */
export function showMissed(): void {
  missed.value = 0;
  changes.value += 1;
}

function connect(): void {
  source = new EventSource(new URL('api/v1/events', document.baseURI));
  source.onopen = () => {
    failures = 0;
    streaming.value = true;
  };
  source.onmessage = tell;
  for (const name of ['tasks', 'sources', 'counts', 'changed']) source.addEventListener(name, tell);
  source.onerror = () => {
    streaming.value = false;
    failures += 1;
    if (failures < 2) return;
    disconnect();
    setTimeout(() => {
      failures = 0;
      if (!source && !document.hidden) connect();
    }, RECONNECT_AFTER);
  };
}

function disconnect(): void {
  source?.close();
  source = undefined;
  streaming.value = false;
}

/** Something changed: says so at once, or when the last time is long enough ago. */
export function tell(): void {
  if (paused.value) {
    missed.value += 1;
    return;
  }
  const wait = lastAt + AT_MOST_EVERY - performance.now();
  if (wait > 0) {
    if (waits) return;
    waits = true;
    setTimeout(() => {
      waits = false;
      tell();
    }, wait);
    return;
  }
  lastAt = performance.now();
  changes.value += 1;
}
