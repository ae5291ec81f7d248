// Runs before the page is drawn, so that a chosen theme is there from the first frame. A script of its own, for the page forbids
// scripts in its text. `dashboard/shell/theme.ts` writes the choice.
try {
  const theme = localStorage.getItem('holdfast.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the theme is the system's.
}
