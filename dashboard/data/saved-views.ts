import { signal } from '@preact/signals';

/** A page with what is asked of it, under a name of the person. This browser keeps it; its address can be sent to others. */
export interface SavedView {
  readonly name: string;
  /** Below the root of the dashboard, such as `tasks?filter=state:dead`. */
  readonly to: string;
}

/** Each dashboard has its own views: one server may serve two dashboards. */
const STORED_AS = `holdfast.views ${new URL(document.baseURI).pathname}`;
const MOST = 50;

export const savedViews = signal<readonly SavedView[]>(read());

/** A view of the same name is replaced. */
export function saveView(view: SavedView): void {
  keep([...savedViews.value.filter(({ name }) => name !== view.name), view].slice(-MOST));
}

export function removeView(name: string): void {
  keep(savedViews.value.filter((view) => view.name !== name));
}

/** Another page of this browser may have changed them. */
addEventListener('storage', ({ key }) => {
  if (key === STORED_AS || key === null) savedViews.value = read();
});

function keep(views: readonly SavedView[]): void {
  savedViews.value = views;
  try {
    localStorage.setItem(STORED_AS, JSON.stringify(views));
  } catch {
    // Without storage they last as long as the page.
  }
}

function read(): readonly SavedView[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(STORED_AS) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is SavedView {
  const { name, to } = Object(value) as Partial<Record<keyof SavedView, unknown>>;
  // An address of another site is refused.
  return typeof name === 'string' && typeof to === 'string' && !/^[a-z]+:|^[/\\]/i.test(to);
}
