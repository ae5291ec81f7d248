/** What every system is given: about 110 bytes as JSON, the same as the floor's. */
export function payload(i) {
  return { n: i, to: `user${i}@example.com`, subject: 'welcome', ref: 'abcdefghijklmnopqrstuvwxyz0123456789' };
}

export function payloads(from, count) {
  return Array.from({ length: count }, (_, i) => payload(from + i));
}
