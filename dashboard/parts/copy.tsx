import { useState } from 'preact/hooks';
import { announce } from '../shell/announcements.ts';
import { Icon } from './icon.tsx';

/** Copies a text. Where the browser has no clipboard for this page, the text is selected instead. */
export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      announce('This browser does not let the page copy. Select the text instead.');
      return;
    }
    announce('Copied');
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="quiet square" aria-label={label} title={label} onClick={copy}>
      <Icon name={done ? 'check' : 'copy'} />
    </button>
  );
}

/** A command of the command line, to copy. */
export function Command({ text }: { readonly text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <Copy text={text} label="Copy the command" />
    </span>
  );
}
