import type { Json } from '../task.ts';

/** Absolute paths. `to` is the final name, not a folder to put it into. */
export interface MoveInput {
  readonly from: string;
  readonly to: string;
}

/** `bytes` is the size of a regular file; folders and symbolic links have none. `note` says what of it was not kept. */
export interface MoveResult {
  readonly to: string;
  readonly how: 'linked' | 'copied' | 'folder' | 'already_moved';
  readonly bytes?: number;
  readonly note?: string;
}

/** What a move asks of its execution. */
export interface MoveTask {
  readonly signal: AbortSignal;
  readonly execution: number;
  readonly id: number;
  readonly checkpoint: Json | undefined;
  saveCheckpoint(value: unknown): Promise<void>;
  heartbeat(): void;
}
