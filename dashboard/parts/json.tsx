import { useState } from 'preact/hooks';
import { visibleOutput } from '../../src/views/visible.ts';
import { Copy } from './copy.tsx';

/** So many characters of a text are drawn; the rest on demand, and never more than a browser can draw. */
const FIRST = 4_000;
const MOST = 200_000;

/** A text of a task: shown as it is, and as text only. A long one is cut. */
export function Text({
  text,
  name,
  isEnd = false,
}: {
  readonly text: string;
  readonly name: string;
  /** Shows the end of a long text, not its beginning. */
  readonly isEnd?: boolean;
}) {
  const [isWhole, setWhole] = useState(false);
  const most = isWhole ? MOST : FIRST;
  const shown = isEnd ? text.slice(-most) : text.slice(0, most);
  const cut = text.length - shown.length;
  return (
    <div class="text">
      <div class="text-tools">
        <Copy text={text} label={`Copy the ${name}`} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a text that scrolls must be reached by the keyboard. */}
      <pre tabIndex={0}>
        <bdi>{visibleOutput(shown, false)}</bdi>
      </pre>
      {cut > 0 && (
        <p class="muted">
          {cut.toLocaleString()} {isEnd ? 'characters before this.' : 'more characters.'}{' '}
          {!isWhole && (
            <button type="button" class="link" onClick={() => setWhole(true)}>
              Show more
            </button>
          )}
        </p>
      )}
    </div>
  );
}

export function JsonText({
  value,
  name,
  isHidden = false,
}: {
  readonly value: unknown;
  readonly name: string;
  /** The server did not send it, because the person may not see it. */
  readonly isHidden?: boolean | undefined;
}) {
  if (isHidden) return <p class="muted">Hidden: you have no permission for this: inputs.</p>;
  return <Text text={JSON.stringify(value, null, 2)} name={name} />;
}
