export function isRunning(pid: number): boolean;
export function childrenOf(pid: number): number[];
