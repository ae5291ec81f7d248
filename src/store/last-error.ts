/** How much of the last error message is stored with a retry, in UTF-16 units. */
const LONGEST = 1_024;

/**
 * The beginning of an error's message. It is well-formed: it is not cut within a surrogate pair, and lone surrogates are
 * replaced.
 */
export function lastError(message: string): string {
  const end = message.length > LONGEST && isHigh(message.charCodeAt(LONGEST - 1)) ? LONGEST - 1 : LONGEST;
  return message.slice(0, end).toWellFormed();
}

/** Whether a character of two units begins here. */
function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
