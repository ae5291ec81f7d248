import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  test: {
    include: ['live.test.mjs'],
    reporters: ['dot'],
    testTimeout: 10_000,
    hookTimeout: 20_000,
    // Libraries that print what they throw.
    silent: 'passed-only',
  },
});
