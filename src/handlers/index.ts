/**
 * Ready-made handlers.
 * @module holdfast/handlers
 */

export { type MoveInput, type MoveResult, move } from './move.ts';
export type { MoveTask } from './move-task.ts';
