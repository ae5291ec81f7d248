import { computed, signal } from '@preact/signals';

/** How the page learns of changes. `away`: the store does not answer. `paused`: a person stopped it, and the page stands still. */
type LiveState = 'live' | 'away' | 'polling' | 'paused';

const POLL_EVERY = 5_000;
/** With hints the page asks seldom by itself: not every change changes how many tasks are in a state. */
const ASK_ANYWAY_EVERY = 20_000;
/** The server may say that something changed many times a second; a page asks again at most so often. */
const AT_MOST_EVERY = 1_000;
const HIDDEN_FOR = 60_000;
const RECONNECT_AFTER = 30_000;

/** Grows whenever what is shown may be old. */
export const changes = signal(0);
/** Grows when the person has done something on this page: they see what came of it, also in a list that stands still otherwise. */
export const ownActs = signal(0);
/** How many changes came while the page is paused. */
export const missed = signal(0);
const paused = signal(false);
const streaming = signal(false);
/** Whether the server says that the store does not answer. */
const away = signal(false);

export const liveState = computed<LiveState>(() => {
  if (paused.value) return 'paused';
  if (!streaming.value) return 'polling';
  return away.value ? 'away' : 'live';
});

/** What a page of this browser tells the others: that something changed, whether it has the stream, and whether the store answers. */
type Said = 'changed' | 'away' | 'back' | 'streaming' | 'not streaming' | 'who streams?';

const NAME = `holdfast ${document.baseURI}`;
const others = new BroadcastChannel(NAME);

let source: EventSource | undefined;
/** Lets another page of this browser have the stream. */
let release: (() => void) | undefined;
let failures = 0;
let lastAt = 0;
/** Whether the next hint is told later. */
let waits = false;

/**
 * Follows the hints of the server. A browser has only six connections to one server, so one page of it has the stream and tells the
 * others; a page that nobody looks at for a minute gives it away. Without a stream the page asks every few seconds.
 */
export function followChanges(): void {
  others.onmessage = ({ data }: MessageEvent<Said>) => hear(data);
  others.postMessage('who streams?' satisfies Said);
  void takeStream();
  let askedAt = 0;
  setInterval(() => {
    if (document.hidden) return;
    const isDue = !streaming.value || performance.now() - askedAt > ASK_ANYWAY_EVERY;
    if (!isDue) return;
    askedAt = performance.now();
    tell();
  }, POLL_EVERY);
  let hidden: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) {
      hidden = setTimeout(() => release?.(), HIDDEN_FOR);
    } else {
      void takeStream();
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

function hear(said: Said): void {
  if (said === 'changed') tell();
  else if (said === 'away' || said === 'back') setAway(said === 'away');
  else if (said !== 'who streams?') streaming.value = said === 'streaming';
  else if (source && streaming.value) {
    others.postMessage('streaming' satisfies Said);
    if (away.value) others.postMessage('away' satisfies Said);
  }
}

/** Waits until no other page of this browser has the stream, then has it. Plain HTTP from another machine knows no locks. */
async function takeStream(): Promise<void> {
  if (release) return;
  let isWanted = true;
  const given = new Promise<void>((resolve) => {
    release = () => {
      isWanted = false;
      release = undefined;
      disconnect();
      resolve();
    };
  });
  const have = () => {
    if (isWanted) connect();
    return given;
  };
  if (navigator.locks) await navigator.locks.request(NAME, have);
  else await have();
}

function connect(): void {
  source = new EventSource(new URL('api/v1/events', document.baseURI));
  source.onopen = () => {
    failures = 0;
    // If it is still away, the stream says so again.
    away.value = false;
    setStreaming(true);
  };
  for (const topic of ['tasks', 'sources']) {
    source.addEventListener(topic, () => {
      others.postMessage('changed' satisfies Said);
      tell();
    });
  }
  for (const said of ['away', 'back'] as const) {
    source.addEventListener(said, () => {
      others.postMessage(said satisfies Said);
      setAway(said === 'away');
    });
  }
  source.onerror = () => {
    setStreaming(false);
    failures += 1;
    if (failures < 2) return;
    disconnect();
    setTimeout(() => {
      failures = 0;
      if (release && !source) connect();
    }, RECONNECT_AFTER);
  };
}

function setAway(is: boolean): void {
  away.value = is;
  if (!is) tell();
}

function disconnect(): void {
  source?.close();
  source = undefined;
  setStreaming(false);
}

function setStreaming(is: boolean): void {
  streaming.value = is;
  others.postMessage((is ? 'streaming' : 'not streaming') satisfies Said);
}
