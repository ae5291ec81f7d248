import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { attentionCount } from '../data/status.ts';
import { Icon } from './icon.tsx';

let isFirst = true;

/** A page: its one heading, what can be done there, and its content. */
export function Page({
  title,
  heading = title,
  back,
  actions,
  children,
}: {
  /** As it stands in the tab of the browser. */
  readonly title: string;
  /** Where it says more than the title. */
  readonly heading?: ComponentChildren;
  /** The list that it belongs to. */
  readonly back?: { readonly to: string; readonly words: string };
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const count = attentionCount.value;
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${count > 0 ? `(${count}) ` : ''}${title} · Holdfast`;
  }, [title, count]);
  // A reader of the screen hears that another page was opened. The first one is read from its beginning.
  useEffect(() => {
    if (!isFirst && document.activeElement === document.body) ref.current?.focus({ preventScroll: true });
    isFirst = false;
  }, []);
  return (
    <>
      {back && (
        <div class="above">
          <a class="back" href={back.to}>
            <Icon name="left" /> {back.words}
          </a>
        </div>
      )}
      <div class="page-head">
        <h1 ref={ref} tabIndex={-1}>
          {heading}
        </h1>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </>
  );
}

/** A part of a page with a heading of its own. */
export function Section({
  title,
  aside,
  children,
  id,
}: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly id?: string;
}) {
  return (
    <section class="card" {...(id && { id })} aria-label={title}>
      <div class="card-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** Facts with their names. What is null or undefined is left out. */
export function Facts({ of }: { readonly of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
