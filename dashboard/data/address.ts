import { signal } from '@preact/signals';
import { pathSegment } from '../../src/path-segment.ts';

/** Where the page is: the path below the root of the dashboard, such as `tasks/41`, and what is asked of it. */
export interface Address {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The root of the dashboard, which the server writes into `<base>`: it may be served under any path. */
const root = new URL(document.baseURI);

export const address = signal<Address>(read());

/** Follows the links of the page and the buttons of the browser. Called once. */
export function followAddress(): void {
  addEventListener('popstate', () => {
    address.value = read();
  });
  document.addEventListener('click', (event) => {
    const link = (event.target as Element).closest('a');
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target !== '' || link.hasAttribute('download')) return;
    if (link.origin !== root.origin || !link.pathname.startsWith(root.pathname)) return;
    event.preventDefault();
    goTo(link.href);
  });
}

/** Opens another address. `replace`: the button back leads past the present one. */
export function goTo(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  const url = new URL(to, root);
  if (url.href !== location.href) history[replace ? 'replaceState' : 'pushState'](null, '', url);
  const before = address.value.path;
  address.value = read();
  if (address.value.path !== before) scrollTo(0, 0);
}

/** The address of a page with a query; what is undefined or empty is left out of it. */
export function addressOf(path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const text = new URLSearchParams(given).toString();
  return text === '' ? path || './' : `${path || './'}?${text}`;
}

/** Changes members of the query of this page, and leaves the others. */
export function ask(
  changed: Readonly<Record<string, string | undefined>>,
  options?: { readonly replace?: boolean },
): void {
  const { path, query } = address.value;
  goTo(addressOf(path, { ...Object.fromEntries(query), ...changed }), options);
}

function read(): Address {
  const path = location.pathname.slice(root.pathname.length).replace(/\/$/, '');
  return { path, query: new URLSearchParams(location.search) };
}

/** A segment of a path, such as the name of a source. */
export function segment(name: string | number): string {
  return pathSegment(String(name));
}
