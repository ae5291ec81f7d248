import { type ShownState, shownState, signOf, stateWords } from '../../src/views/glyphs.ts';
import type { TaskJson } from '../data/documents.ts';

/** A state as glyph, word and colour: none of them is needed to understand the others. */
export function StateSign({ state }: { readonly state: ShownState }) {
  const { text, style } = signOf(state);
  return <Sign glyph={text} style={style} words={stateWords(state)} />;
}

export function TaskSign({
  task,
}: {
  readonly task: Pick<TaskJson, 'state' | 'attempts' | 'deferrals' | 'executions'>;
}) {
  return <StateSign state={shownState(task)} />;
}

/** Any other sign: of a source, a group, a worker. `style`: ok, active, idle, waiting, human or dead. */
export function Sign({
  glyph,
  style,
  words,
}: {
  readonly glyph: string;
  readonly style: string;
  readonly words: string;
}) {
  return (
    <span class={`sign ${style}`}>
      <Glyph of={glyph} />
      {words}
    </span>
  );
}

/** The glyphs of `views/glyphs.ts` as drawings, because not every system has a font with all of them. */
const DRAWN: Readonly<Record<string, string>> = {
  '◷': 'M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M6 3v3h3',
  '○': 'M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10',
  '▶': 'M3 1.5l7.500 4.500L3 10.500z',
  '↻': 'M10.500 6a4.500 4.500 0 1 1-1.300-3.200M10.500 1v2.500H8',
  '⏸': 'M3.500 1.500v9M8.500 1.500v9',
  '⚑': 'M2.500 11V1h7L8 3.700l1.500 2.800h-7',
  '✕': 'M2 2l8 8M10 2l-8 8',
  '✓': 'M1.500 6.500l3 3.500L10.500 2',
  '⊘': 'M6 11A5 5 0 1 0 6 1a5 5 0 0 0 0 10M2.500 9.500l7-7',
};

export function Glyph({ of: glyph }: { readonly of: string }) {
  const path = DRAWN[glyph];
  if (path === undefined) return <span aria-hidden="true">{glyph}</span>;
  return (
    <svg class="glyph" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
      <path d={path} {...(glyph === '▶' && { class: 'filled' })} />
    </svg>
  );
}
