import type { ComponentChildren } from 'preact';
import type { Problem } from '../data/api.ts';
import type { Shown } from '../data/use-document.ts';
import { Icon } from './icon.tsx';

/** What is shown where nothing is: why, and what to do. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Why the server did not do what was asked. */
export function ProblemNote({ problem }: { readonly problem: Problem }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <div>
        <p>{problem.message}</p>
        {problem.hints.map((hint) => (
          <p key={hint} class="muted">
            {hint}
          </p>
        ))}
      </div>
    </div>
  );
}

/**
 * A document, or what is shown instead: a note while it is loaded, and what went wrong. What was loaded before stays readable below
 * the note.
 */
export function Loaded<Document>({
  shown,
  children,
}: {
  readonly shown: Shown<Document>;
  readonly children: (document: Document) => ComponentChildren;
}) {
  const { document, problem, isOld } = shown;
  return (
    <>
      {problem && !isOld && <ProblemNote problem={problem} />}
      {document === undefined && (!problem || isOld) && <p class="loading">Loading …</p>}
      {document !== undefined && (
        <div class={isOld ? 'loaded old' : 'loaded'} aria-busy={isOld}>
          {children(document)}
        </div>
      )}
    </>
  );
}
