import { signal } from '@preact/signals';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { visible } from '../../src/views/visible.ts';
import { addressOf, goTo, segment } from '../data/address.ts';
import { get } from '../data/api.ts';
import type { FailureGroupJson } from '../data/documents.ts';
import { savedViews } from '../data/saved-views.ts';
import { activeKeys } from './keys.ts';
import { NAVIGATION } from './navigation.ts';

export const isPaletteOpen = signal(false);

/** Something that the palette goes to or does. */
interface Entry {
  readonly id: string;
  readonly kind: 'Page' | 'View' | 'Here' | 'Task' | 'Source' | 'Failure' | 'Tasks';
  readonly title: string;
  /** The keys that do the same. */
  readonly keys?: string;
  readonly run: () => void;
}

const MOST = 12;
/** The store is asked when nothing was typed for so many milliseconds. */
const PAUSE = 120;

/** Goes to pages, views, tasks, sources and failures by their name, and does what keys do on the open page. */
export function Palette() {
  return isPaletteOpen.value ? <OpenPalette /> : null;
}

function OpenPalette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useId();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const stored = useStored(text.trim());
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const entries = entriesFor(text.trim(), stored);
  const at = Math.min(chosen, entries.length - 1);
  const take = (entry: Entry | undefined) => {
    if (!entry) return;
    dialog.current?.close();
    isPaletteOpen.value = false;
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || entries.length === 0) return;
    event.preventDefault();
    setChosen((at + by + entries.length) % entries.length);
  };
  useEffect(() => document.getElementById(`${list}-${at}`)?.scrollIntoView({ block: 'nearest' }), [at, text]);
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Go to, or do"
      onClose={() => {
        isPaletteOpen.value = false;
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          take(entries[at]);
        }}
      >
        <input
          type="text"
          role="combobox"
          aria-label="A page, a view, a task, a source, a failure, or what to do"
          aria-expanded={entries.length > 0}
          aria-controls={list}
          aria-autocomplete="list"
          {...(entries[at] && { 'aria-activedescendant': `${list}-${at}` })}
          placeholder="Go to a page, #41, a source … or do"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={onKeyDown}
        />
        <div id={list} role="listbox" aria-label="What it finds" class="palette-list">
          {entries.map((entry, i) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus, and names the option that is chosen.
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the input.
            <div key={entry.id} id={`${list}-${i}`} role="option" aria-selected={i === at} onClick={() => take(entry)}>
              <bdi>{visible(entry.title)}</bdi>
              <span class="muted">
                {entry.kind} {entry.keys && <kbd>{entry.keys}</kbd>}
              </span>
            </div>
          ))}
        </div>
        {entries.length === 0 && <p class="muted">Nothing is called so.</p>}
      </form>
    </dialog>
  );
}

// ── What it finds ──

function entriesFor(text: string, { sources, groups }: Stored): readonly Entry[] {
  const number = /^#?([1-9]\d{0,14})$/.exec(text)?.[1];
  const matches = ({ title }: Entry) =>
    text === '' || wordsIn(text).every((word) => title.toLowerCase().includes(word));
  const found = [
    ...(number === undefined ? [] : [link('Task', `#${number}`, `tasks/${number}`)]),
    ...[...pages(), ...views(), ...doings()].filter(matches),
    ...sources.map((name) => link('Source', name, `sources/${segment(name)}`)),
    ...(text === ''
      ? []
      : groups
          .map(({ id, message }) => link('Failure', message.slice(0, 120), `failures/${segment(id)}`))
          .filter(matches)),
  ];
  // A filter is never the first: Enter on a name goes to what has it.
  const asFilter =
    text === '' || number !== undefined ? [] : [link('Tasks', text, addressOf('tasks', { filter: text }))];
  return [...found.slice(0, MOST), ...asFilter];
}

function wordsIn(text: string): readonly string[] {
  return text.toLowerCase().split(/\s+/);
}

function link(kind: Entry['kind'], title: string, to: string): Entry {
  return { id: `${kind} ${to}`, kind, title, run: () => goTo(to) };
}

function pages(): readonly Entry[] {
  return NAVIGATION.map(({ title, path, key }) => ({ ...link('Page', title, addressOf(path)), keys: `g ${key}` }));
}

function views(): readonly Entry[] {
  return savedViews.value.map(({ name, to }) => link('View', name, to));
}

/** What keys do on this page and everywhere; moving from row to row makes no sense here. */
function doings(): readonly Entry[] {
  const known = [...activeKeys.here.value.flat(), ...activeKeys.everywhere.value];
  return known
    .filter(({ keys }) => !keys.startsWith('g ') && !['j', 'k', 'Escape', 'Ctrl+K'].includes(keys))
    .map(({ keys, does, run }) => ({
      id: `Here ${keys} ${does}`,
      kind: 'Here',
      title: `${does.charAt(0).toUpperCase()}${does.slice(1)}`,
      keys,
      run,
    }));
}

interface Stored {
  readonly sources: readonly string[];
  readonly groups: readonly FailureGroupJson[];
}

/** Names of the store: sources that begin so, and the groups of failures, which are read once. */
function useStored(text: string): Stored {
  const [found, setFound] = useState<{ readonly of: string; readonly sources: readonly string[] }>();
  const [groups, setGroups] = useState<readonly FailureGroupJson[]>([]);
  useEffect(() => {
    const asked = new AbortController();
    get<{ readonly items: readonly FailureGroupJson[] }>('failures', asked.signal).then(
      ({ items }) => setGroups(items),
      // Without the groups, the palette still finds everything else.
      () => undefined,
    );
    return () => asked.abort();
  }, []);
  useEffect(() => {
    if (text === '') return;
    const asked = new AbortController();
    const timer = setTimeout(() => {
      const filter = `source:${text}`;
      const path = addressOf('filter/complete', { text: filter, at: String(filter.length) });
      get<{ readonly items: readonly { readonly text: string }[] }>(path, asked.signal).then(
        ({ items }) => setFound({ of: text, sources: items.flatMap((item) => sourceIn(item.text)) }),
        () => undefined,
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      asked.abort();
    };
  }, [text]);
  return { sources: text !== '' && found?.of === text ? found.sources : [], groups };
}

/** The source in a completed filter such as `source:http:api` or `"source:a b"`. */
function sourceIn(filter: string): readonly string[] {
  const plain = filter.trim().replace(/^"(.*)"$/, '$1');
  const name = /^source:(.+)$/.exec(plain)?.[1]?.replace(/^"(.*)"$/, '$1');
  return name === undefined || /[*,]$/.test(name) ? [] : [name.replaceAll(/\\(["\\])/g, '$1')];
}
