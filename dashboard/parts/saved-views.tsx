import { useState } from 'preact/hooks';
import { address, addressOf } from '../data/address.ts';
import { removeView, savedViews, saveView } from '../data/saved-views.ts';
import { announce } from '../shell/announcements.ts';
import { Icon } from './icon.tsx';

/** The saved views, and a form that saves this page as one. */
export function SavedViews() {
  const [name, setName] = useState('');
  const { path, query } = address.value;
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === '') return;
    // Which task is previewed, and which page of the list is shown, is not saved.
    const { task: _, before: __, ...kept } = Object.fromEntries(query);
    saveView({ name: name.trim(), to: addressOf(path, kept) });
    announce(`Saved in this browser as ${name.trim()}.`);
    setName('');
  };
  return (
    <details class="drop-down views">
      <summary class="button">
        <Icon name="table" /> Views
      </summary>
      <div class="drop-down-content">
        {savedViews.value.length === 0 && (
          <p class="muted">A view is this list with its filter and columns, under a name of yours.</p>
        )}
        <ul>
          {savedViews.value.map((view) => (
            <li key={view.name}>
              <a href={view.to}>
                <bdi>{view.name}</bdi>
              </a>
              <button
                type="button"
                class="quiet square"
                aria-label={`Remove the view ${view.name}`}
                onClick={() => removeView(view.name)}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
        <form class="save-view" onSubmit={save}>
          <label class="field">
            Save this list as
            <input
              type="text"
              value={name}
              maxLength={60}
              autocomplete="off"
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </label>
          <button type="submit">Save</button>
        </form>
      </div>
    </details>
  );
}
