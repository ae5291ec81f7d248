// The site of the documentation: the pages of docs/ with a menu, a search and a dark mode. It loads nothing from elsewhere.
import { defineConfig } from 'vitepress';
import { anchorOf } from '../anchor.mjs';
import { menu } from '../pages.mjs';

/** The pages of the API are not searched: they would be found before the pages that explain. */
function textToSearch(text, env, markdown) {
  const html = markdown.render(text, env);
  return env.relativePath.startsWith('reference/api/') ? '' : html;
}

export default defineConfig({
  title: 'Holdfast',
  description: 'A durable task queue and worker engine for TypeScript, and what happens after a task fails',
  head: [['link', { rel: 'icon', href: '/icon.svg' }]],
  srcDir: 'pages',
  markdown: {
    anchor: { slugify: anchorOf },
    // `tasks/{id}` in a heading is no attribute.
    attrs: { disable: true },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    search: { provider: 'local', options: { _render: textToSearch } },
    sidebar: menu(),
    outline: [2, 3],
  },
});
