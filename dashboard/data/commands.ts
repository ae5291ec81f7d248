import { quoted } from '../../src/views/visible.ts';
import { me } from './status.ts';

/** The same on the command line, with the flags that this store needs. */
export function commandFor(...args: readonly (string | number)[]): string {
  const store = me.value?.store;
  const flags = store?.kind === 'sqlite' && store.name !== '' ? ['-s', store.name] : [];
  return ['holdfast', ...flags, ...args].map((arg) => quoted(String(arg))).join(' ');
}
