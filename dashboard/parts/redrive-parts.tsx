import type { RedriveJson } from '../data/operating-documents.ts';
import { actOnRedrive, verbsOfRedrive } from '../data/redrive-acts.ts';
import { ActButton } from './act.tsx';
import { Sign } from './sign.tsx';

const SIGNS = {
  running: ['▶', 'active'],
  paused: ['⏸', 'waiting'],
  stopped: ['✕', 'dead'],
  done: ['✓', 'ok'],
  cancelled: ['⊘', 'idle'],
} as const;

export function RedriveSign({ redrive: { state, selecting } }: { readonly redrive: RedriveJson }) {
  const [glyph, style] = SIGNS[state];
  const words = state === 'stopped' ? 'stopped itself' : state === 'running' && selecting ? 'selecting' : state;
  return <Sign glyph={glyph} style={style} words={words} />;
}

/** How far it is, and how the tasks went that it put back: one bar with its numbers. */
export function RedriveProgress({ redrive }: { readonly redrive: RedriveJson }) {
  const {
    selected,
    put_back: putBack,
    succeeded,
    failed_again: failed,
    ended_otherwise: other,
    undecided,
    skipped,
    left,
  } = redrive;
  const parts = [
    { id: 'succeeded', style: 'ok solid', count: succeeded },
    { id: 'failed again', style: 'dead solid', count: failed },
    { id: 'ended otherwise', style: 'human solid', count: other },
    { id: 'without an outcome yet', style: 'active outline', count: undecided },
    { id: 'skipped', style: 'idle outline', count: skipped },
  ];
  const words = [...parts, { id: 'left', count: left }]
    .filter(({ count }) => count > 0)
    .map(({ id, count }) => `${count.toLocaleString()} ${id}`)
    .join(', ');
  let at = 0;
  return (
    <div class="progress">
      <svg height="12" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
        <rect class="ground" width="100" height="12" />
        {parts.map(({ id, style, count }) => {
          const width = selected === 0 ? 0 : (count / selected) * 100;
          at += width;
          return count > 0 && <rect key={id} class={`bar ${style}`} x={at - width} width={width} height="12" />;
        })}
      </svg>
      <span>
        {(putBack + skipped).toLocaleString()} of {selected.toLocaleString()}
        <span class="muted"> {words && `· ${words}`}</span>
      </span>
    </div>
  );
}

export function RedriveActs({ redrive }: { readonly redrive: RedriveJson }) {
  return (
    <div class="row-acts">
      {verbsOfRedrive(redrive).map((verb) => (
        <ActButton key={verb} verb="redrive" style="quiet" act={actOnRedrive(verb, redrive)} />
      ))}
    </div>
  );
}
