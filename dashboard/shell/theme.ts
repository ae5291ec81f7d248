import { signal } from '@preact/signals';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

/** As in `public/theme.js`, which sets it before the page is drawn. */
const STORED_AS = 'holdfast.theme';

export const theme = signal<Theme>((document.documentElement.dataset.theme as Theme | undefined) ?? 'system');

function setTheme(next: Theme): void {
  theme.value = next;
  if (next === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(STORED_AS, next);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

export function nextTheme(): void {
  setTheme(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] as Theme);
}
