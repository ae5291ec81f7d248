import { readFileSync } from 'node:fs';

/** The version of the package that this file was installed with. */
export function versionOf(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return String((JSON.parse(text) as { version?: unknown }).version);
}
