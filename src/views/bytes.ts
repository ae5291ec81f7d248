/** `4.2 MB`. */
export function inBytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
