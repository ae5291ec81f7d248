/** Before the key in the fragment of an address, as `src/dashboard/session.ts` writes it. */
const KEY_IN_FRAGMENT = '#key=';
const STORED_AS = 'holdfast.key';

/**
 * The key that the server wants with each call if this browser was let in by a link; otherwise any text. It is kept where only pages of
 * this port can read it: a browser shows cookies to all ports of a machine.
 */
export const key = readKey();

/** Takes the key out of the address, so that it is in no history and no copied link. */
function readKey(): string {
  const { hash, pathname, search } = location;
  const given = hash.startsWith(KEY_IN_FRAGMENT) ? hash.slice(KEY_IN_FRAGMENT.length) : undefined;
  if (given !== undefined) history.replaceState(null, '', `${pathname}${search}`);
  try {
    if (given !== undefined) localStorage.setItem(STORED_AS, given);
    return given ?? localStorage.getItem(STORED_AS) ?? '1';
  } catch {
    // Without storage the key lasts as long as the page.
    return given ?? '1';
  }
}
