import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/**
 * Builds the page that `src/dashboard` serves. All addresses in it are relative, for it may be served under any path; nothing of it
 * stands in the HTML itself, for its content security policy allows only files.
 */
export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    emptyOutDir: true,
    reportCompressedSize: false,
  },
});
