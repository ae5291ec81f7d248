const UNITS = ['MB', 'GB', 'TB'] as const;

/** `4.2 MB`, `78 GB`: two digits of what is large. */
export function inBytes(bytes: number): string {
  let [value, unit] = [bytes / 1_000_000, 0];
  while (value >= 1_000 && unit < UNITS.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${value.toFixed(value < 10 || unit === 0 ? 1 : 0)} ${UNITS[unit]}`;
}
