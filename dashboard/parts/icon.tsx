/** The icons, drawn as lines in a square of 16. */
const PATHS = {
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10M11 11l3 3',
  menu: 'M2 4h12M2 8h12M2 12h12',
  pause: 'M5 3v10M11 3v10',
  play: 'M4 3l9 5-9 5z',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6M8 1v1M8 14v1M1 8h1M14 8h1M3 3l.8.8M12.2 12.2l.8.8M3 13l.8-.8M12.2 3.8l.8-.8',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.500 3 5.500 5.500 0 1 0 13 9.500z',
  screen: 'M2 3h12v8H2zM6 14h4',
  help: 'M8 15A7 7 0 1 0 8 1a7 7 0 0 0 0 14M6 6a2 2 0 1 1 2.500 2c-.4.200-.5.500-.5 1M8 11.500v.1',
  copy: 'M5 5V2h9v9h-3M2 5h9v9H2z',
  check: 'M3 8l3.500 4L13 4',
  close: 'M3 3l10 10M13 3L3 13',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  left: 'M10 4L6 8l4 4',
  warning: 'M8 2l6.500 12h-13zM8 7v3M8 12v.1',
  table: 'M2 3h12v10H2zM2 6.500h12M7 6.500V13',
  columns: 'M2 3h12v10H2zM6 3v10M10 3v10',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
