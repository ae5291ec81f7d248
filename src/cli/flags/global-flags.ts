/** The flags that every command takes. */
export interface GlobalFlags {
  readonly store?: string;
  readonly config?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: number;
  readonly color?: boolean;
  readonly input?: boolean;
  readonly yes?: boolean;
}

/** As they are declared. */
export const GLOBAL_FLAGS: readonly {
  readonly flags: string;
  readonly attribute: keyof GlobalFlags;
  readonly help: string;
}[] = [
  { flags: '-s, --store <store>', attribute: 'store', help: 'the store: a path, or postgres://… (HOLDFAST_STORE)' },
  {
    flags: '-c, --config <file>',
    attribute: 'config',
    help: 'the policies: holdfast.yaml or .json (default: the one here, then your own)',
  },
  { flags: '--json', attribute: 'json', help: 'one JSON document on stdout' },
  { flags: '-q, --quiet', attribute: 'quiet', help: 'no progress and no hints' },
  { flags: '-v, --verbose', attribute: 'verbose', help: 'say more; twice: for a bug report' },
  { flags: '--no-color', attribute: 'color', help: 'no colours (NO_COLOR)' },
  { flags: '--no-input', attribute: 'input', help: 'never ask' },
  { flags: '-y, --yes', attribute: 'yes', help: 'answer yes to all questions' },
];
