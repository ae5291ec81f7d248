import type { ShownState } from './glyphs.ts';

/** What needs attention, and the state whose glyph each kind has. */
export const SIGN_OF_ATTENTION = {
  needs_manual: 'needs_manual',
  dead: 'dead',
  no_worker: 'held',
  lease_lapsed: 'dead',
  source_held: 'held',
  source_needs_person: 'needs_manual',
  source_down: 'held',
  queue_paused: 'held',
  worker_paused: 'held',
  policies_differ: 'held',
  redrive_stopped: 'dead',
  redrive_paused: 'held',
  clock: 'held',
  config_refused: 'dead',
} as const satisfies Record<string, ShownState>;

export type AttentionKind = keyof typeof SIGN_OF_ATTENTION;
