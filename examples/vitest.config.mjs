import { defineConfig } from 'vitest/config';

/** The tests of the examples. They import Holdfast as its users do, so `dist` must have been built. */
export default defineConfig({
  test: {
    include: ['examples/**/*.test.ts'],
    // A project of its own, which `test/docs/app.test.ts` installs, compiles and tests.
    exclude: ['examples/app/**', '**/node_modules/**'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
