import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useErrorBoundary } from 'preact/hooks';
import { address, addressOf, goTo } from '../data/address.ts';
import { problemOf } from '../data/api.ts';
import { liveState, missed, pauseOrResume, showMissed } from '../data/live.ts';
import { savedViews } from '../data/saved-views.ts';
import { me, status, trouble } from '../data/status.ts';
import { ActDialog } from '../parts/act.tsx';
import { Icon } from '../parts/icon.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, ProblemNote } from '../parts/states.tsx';
import { pageAt } from '../routes.tsx';
import { announcement } from './announcements.ts';
import { Finder } from './finder.tsx';
import { Help, isHelpOpen } from './help.tsx';
import { activeKeys } from './keys.ts';
import { NAVIGATION } from './navigation.ts';
import { isPaletteOpen, Palette } from './palette.tsx';
import { nextTheme, theme } from './theme.ts';

/** Whether the navigation is open, where it does not fit beside the page. */
const isMenuOpen = signal(false);

/** What is around every page. */
export function Shell() {
  const { path } = address.value;
  // Another page closes the menu.
  useEffect(() => {
    isMenuOpen.value = false;
  }, [path]);
  return (
    <div class="shell">
      <SkipLink />
      <Top />
      <Navigation />
      <div class="beside">
        <Notices />
        <main id="main" tabIndex={-1}>
          <Guarded key={path}>{pageAt(path) ?? <NoSuchPage />}</Guarded>
        </main>
        <Foot />
      </div>
      <Announcement />
      <ActDialog />
      <Help />
      <Palette />
    </div>
  );
}

/** A fault of one page leaves the others: the navigation stays, and the fault is shown. */
function Guarded({ children }: { readonly children: ComponentChildren }) {
  const [fault] = useErrorBoundary();
  if (fault === undefined) return <>{children}</>;
  return (
    <Page title="This page is broken">
      <ProblemNote problem={problemOf(fault)} />
      <p>The command line shows the same. Please report it with the text above and the address of the page.</p>
    </Page>
  );
}

/** A link to a part of this page would lead to the root of the dashboard, because of `<base>`. */
function SkipLink() {
  return (
    <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
      Skip to the content
    </button>
  );
}

function Top() {
  const { environment } = me.value ?? {};
  return (
    <header class="top">
      <button
        type="button"
        class="quiet square menu-button"
        aria-label="Menu"
        aria-expanded={isMenuOpen.value}
        aria-controls="navigation"
        onClick={() => {
          isMenuOpen.value = !isMenuOpen.value;
        }}
      >
        <Icon name={isMenuOpen.value ? 'close' : 'menu'} />
      </button>
      <a class="brand" href="./">
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
          <rect width="32" height="32" rx="8" class="brand-ground" />
          <path d="M11 7v18M21 7v18M11 16h10" class="brand-sign" />
        </svg>
        Holdfast
      </a>
      {environment && <span class="environment">{environment}</span>}
      <Finder />
      <div class="top-tools">
        <Live />
        <button
          type="button"
          class="quiet square"
          aria-label={`Theme: ${theme.value}. Change it`}
          title={`Theme: ${theme.value}`}
          onClick={nextTheme}
        >
          <Icon name={theme.value === 'light' ? 'sun' : theme.value === 'dark' ? 'moon' : 'screen'} />
        </button>
        <button
          type="button"
          class="quiet square"
          aria-label="Keyboard and help"
          title="Keyboard and help (?)"
          onClick={() => {
            isHelpOpen.value = true;
          }}
        >
          <Icon name="help" />
        </button>
      </div>
    </header>
  );
}

function Live() {
  const state = liveState.value;
  const words = { live: 'Live', away: 'No answer', polling: 'Polling', paused: 'Paused' }[state];
  const does = state === 'paused' ? 'Follow changes again' : 'Pause: nothing on the page changes';
  return (
    <button
      type="button"
      class={`quiet ${state}`}
      title={`${does} (p)`}
      aria-label={`${words}. ${does}`}
      onClick={pauseOrResume}
    >
      {state === 'paused' ? <Icon name="play" /> : <span class="live-dot" aria-hidden="true" />}
      <span class="live-words">{words}</span>
    </button>
  );
}

function Navigation() {
  const { path, query } = address.value;
  return (
    <nav id="navigation" aria-label="Pages" class={isMenuOpen.value ? 'navigation open' : 'navigation'}>
      <ul>
        {NAVIGATION.map(({ title, path: to, badge, begins }) => {
          const isHere = to === '' ? path === '' : path === to || path.startsWith(`${to}/`);
          const count = status.value ? (badge?.(status.value) ?? 0) : 0;
          return (
            <li key={to} class={begins ? 'begins' : ''}>
              <a href={addressOf(to)} {...(isHere && { 'aria-current': 'page' })}>
                {title}
                {count > 0 && <span class="badge">{count > 9_999 ? '10k+' : count.toLocaleString()}</span>}
              </a>
            </li>
          );
        })}
        {savedViews.value.map(({ name, to }, i) => (
          <li key={name} class={i === 0 ? 'begins' : ''}>
            <a href={to} {...(to === addressOf(path, Object.fromEntries(query)) && { 'aria-current': 'page' })}>
              <bdi>{name}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Notices() {
  return (
    <>
      {trouble.value && (
        <p class="notice">
          <Icon name="warning" />
          <span>
            {trouble.value.message} {trouble.value.hints.join(' ')} What is shown may be old.
          </span>
        </p>
      )}
      {!trouble.value && liveState.value === 'away' && (
        <p class="notice">
          <Icon name="warning" />
          <span>The store does not answer. The page tries again by itself. What is shown may be old.</span>
        </p>
      )}
      {liveState.value === 'paused' && missed.value > 0 && (
        <button type="button" class="newer" onClick={showMissed}>
          {missed.value === 1 ? '1 change' : `${missed.value} changes`} while paused: show
        </button>
      )}
    </>
  );
}

function Foot() {
  const { version, store, read_only: readOnly, actor } = me.value ?? {};
  return (
    <footer class="foot">
      {store && <span>{store.name}</span>}
      {actor && <span>you are {actor}</span>}
      {readOnly && <span>read-only</span>}
      {version && <span>Holdfast {version}</span>}
    </footer>
  );
}

/** The one status region: always in the document, for a screen reader to notice what changes in it. */
function Announcement() {
  const said = announcement.value;
  return (
    <div role="status" aria-live="polite" class="announcement">
      {said && <p class={said.isProblem ? 'said problem' : 'said'}>{said.text}</p>}
    </div>
  );
}

function NoSuchPage() {
  return (
    <Page title="No such page">
      <Empty title="There is no page at this address.">
        <p>
          <a href="./">Open the overview</a>
        </p>
      </Empty>
    </Page>
  );
}

/** What keys do on every page. Called once. */
export function setKeysOfShell(): void {
  activeKeys.everywhere.value = [
    { keys: '?', does: 'show this help', run: () => (isHelpOpen.value = true) },
    { keys: '/', does: 'find tasks', run: () => document.querySelector<HTMLInputElement>('#finder')?.focus() },
    { keys: 'Ctrl+K', does: 'go to anything, or do something', run: () => (isPaletteOpen.value = true) },
    ...NAVIGATION.map(({ key, title, path }) => ({ keys: `g ${key}`, does: title, run: () => goTo(addressOf(path)) })),
    { keys: 'p', does: 'pause or follow changes', run: pauseOrResume },
    { keys: 't', does: 'change the theme', run: nextTheme },
    { keys: 'Escape', does: 'back', run: back },
  ];
}

/** From one task or group to its list. */
function back(): void {
  const { path } = address.value;
  const above = path.split('/').slice(0, -1).join('/');
  if (path.includes('/')) goTo(addressOf(above));
}
