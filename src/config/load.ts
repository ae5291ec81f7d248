import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { InvalidConfigError } from '../errors.ts';
import { Registry, type RegistryOptions } from './registry.ts';

/**
 * Reads a configuration from a file, YAML or JSON, into a registry for `openHoldfast({ config })`.
 * @throws InvalidConfigError with everything that is wrong with it, or where it cannot be read.
 */
export async function loadConfig(path: string, options: RegistryOptions = {}): Promise<Registry> {
  const registry = new Registry(options);
  await loadInto(registry, path);
  return registry;
}

/** Reads a file into the registry, or throws and leaves the registry unchanged. */
export async function loadInto(registry: Registry, path: string): Promise<void> {
  const file = nameOfFile(path);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    const error = unreadable(file, cause);
    registry.reject(error);
    throw error;
  }
  registry.load(text, file);
}

function unreadable(file: string, cause: unknown): InvalidConfigError {
  const why =
    (cause as NodeJS.ErrnoException).code === 'ENOENT'
      ? 'There is no such file.'
      : `It cannot be read: ${(cause as Error).message}.`;
  return new InvalidConfigError(file, [{ severity: 'error', path: '', line: 1, column: 1, value: '', message: why }], {
    cause,
  });
}

/** The path for messages: relative to the current folder if it is inside. */
export function nameOfFile(path: string): string {
  const near = relative('.', path);
  return near === '' || near.startsWith('..') ? path : near;
}
