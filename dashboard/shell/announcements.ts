import { signal } from '@preact/signals';

/** What happened, for the one status region of the page: seen by everybody, and read out by a screen reader. */
export const announcement = signal<{ readonly text: string; readonly isProblem: boolean } | undefined>(undefined);

const SHOWN_FOR = 6_000;
let end: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string, { isProblem = false }: { readonly isProblem?: boolean } = {}): void {
  clearTimeout(end);
  announcement.value = { text, isProblem };
  end = setTimeout(() => {
    announcement.value = undefined;
  }, SHOWN_FOR);
}
