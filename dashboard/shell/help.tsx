import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { activeKeys, type Key, lettersOn, setLetters } from './keys.ts';

export const isHelpOpen = signal(false);

/** What keys do, on every page and on this one. */
export function Help() {
  return isHelpOpen.value ? <OpenHelp /> : null;
}

function OpenHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const closes = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    dialog.current?.showModal();
    // Not on the box: Space there would switch off the keys that somebody came to read.
    closes.current?.focus();
  }, []);
  const here = activeKeys.here.value.flat();
  const everywhere = activeKeys.everywhere.value;
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <h2 id="help-title">Keyboard</h2>
      <div class="help-lists">
        {here.length > 0 && <Keys title="On this page" keys={here} />}
        <Keys title="Everywhere" keys={everywhere.filter(({ keys }) => !keys.startsWith('g '))} />
        <Keys title="Go to" keys={everywhere.filter(({ keys }) => keys.startsWith('g '))} />
      </div>
      <label class="check">
        <input type="checkbox" checked={lettersOn.value} onChange={() => setLetters(!lettersOn.value)} />
        Single letters do something
      </label>
      <div class="dialog-foot">
        <button ref={closes} type="button" class="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

function Keys({ title, keys }: { readonly title: string; readonly keys: readonly Key[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl class="keys">
        {keys.map(({ keys: pressed, does }) => (
          <div key={pressed}>
            <dt>
              {pressed.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
