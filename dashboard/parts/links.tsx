import type { ComponentChildren } from 'preact';
import { printFilter } from '../../src/filter.ts';
import { visible } from '../../src/views/visible.ts';
import { address, addressOf, ask } from '../data/address.ts';
import { Icon } from './icon.tsx';

/** A name that leads to all tasks with it. */
export function NameLink({
  of,
  name,
}: {
  readonly of: 'types' | 'queues' | 'sources' | 'reasons';
  readonly name: string;
}) {
  return (
    <a class="name" href={addressOf('tasks', { filter: printFilter({ [of]: [name] }) })} title={name}>
      <bdi>{visible(name)}</bdi>
    </a>
  );
}

/** The way to older rows and back, for a list whose page is in `before` of the address. */
export function PagesOfList({
  next,
  children,
}: {
  readonly next: string | null;
  readonly children?: ComponentChildren;
}) {
  const before = address.value.query.get('before');
  return (
    <nav class="pages" aria-label="Pages of the list">
      {children}
      {before !== null && (
        <button type="button" onClick={() => ask({ before: undefined })}>
          Newest
        </button>
      )}
      {next !== null && (
        <button type="button" onClick={() => ask({ before: next })}>
          Older
          <Icon name="right" />
        </button>
      )}
    </nav>
  );
}
