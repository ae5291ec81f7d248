import { NO_END } from '../data/source-acts.ts';

const ENDS = [
  [NO_END, 'until somebody takes it back'],
  ['15m', 'for 15 minutes'],
  ['1h', 'for an hour'],
  ['4h', 'for 4 hours'],
  ['24h', 'for a day'],
  ['7d', 'for a week'],
] as const;

/** The field for how long a hold or a mute lasts. */
export function HowLong({ onChoice }: { readonly onChoice: (lasts: string) => void }) {
  return (
    <label class="field">
      How long
      <select onChange={(event) => onChoice(event.currentTarget.value)}>
        {ENDS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}
