// Ready-made handlers: `holdfast/handlers`.
export { type MoveInput, type MoveResult, move } from './move.ts';
