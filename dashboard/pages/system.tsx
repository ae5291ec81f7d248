import { inBytes } from '../../src/views/bytes.ts';
import { visible } from '../../src/views/visible.ts';
import { commandFor } from '../data/commands.ts';
import { me } from '../data/status.ts';
import { useDocument } from '../data/use-document.ts';
import { Command, Copy } from '../parts/copy.tsx';
import { Facts, Page, Section } from '../parts/page.tsx';
import { Sign } from '../parts/sign.tsx';
import { Loaded } from '../parts/states.tsx';

interface DoctorDocument {
  readonly items: readonly Check[];
}

interface Check {
  readonly check: string;
  readonly ok: boolean;
  readonly found: string;
  /** A command, or what else a person does. */
  readonly action: string | null;
}

interface StoreDocument {
  readonly store: string;
  readonly kind: string;
  readonly schema_version: number;
  readonly durability: string;
  readonly driver: string;
  readonly bytes: number;
  readonly free_bytes: number | null;
  readonly log_bytes: number | null;
  readonly dead_rows: number | null;
}

/** The size of a large store takes the server a while. */
const HALF_MINUTE = 30_000;

/** Are the store, the disk, the clock and the workers sound? */
export function SystemPage() {
  const checks = useDocument<DoctorDocument>('doctor', undefined, HALF_MINUTE);
  const store = useDocument<StoreDocument>('db', undefined, HALF_MINUTE);
  return (
    <Page title="System">
      <Loaded shown={checks}>
        {({ items }) => {
          const unsound = items.filter(({ ok }) => !ok);
          const title = unsound.length === 0 ? 'All checks passed' : `Not sound (${unsound.length})`;
          return (
            <Section title={title} aside={<Command text={commandFor('doctor')} />}>
              <ul class="system-checks">
                {[...unsound, ...items.filter(({ ok }) => ok)].map((item, i) => (
                  <CheckLine key={`${item.check} ${i}`} item={item} />
                ))}
              </ul>
              <p class="muted">
                The invariants of all tasks are checked on the command line, because that reads the whole store:{' '}
                <Command text={commandFor('doctor', '--deep')} />
              </p>
            </Section>
          );
        }}
      </Loaded>
      <Loaded shown={store}>
        {(known) => (
          <Section title="The store" aside={<Command text={commandFor('db')} />}>
            <StoreFacts store={known} />
          </Section>
        )}
      </Loaded>
    </Page>
  );
}

function CheckLine({ item: { check, ok, found, action } }: { readonly item: Check }) {
  return (
    <li>
      <Sign glyph={ok ? '✓' : '✕'} style={ok ? 'ok' : 'dead'} words={check.replaceAll('_', ' ')} />
      <span>
        {visible(found)}
        {action !== null && (
          <span class="block">
            <strong>Do</strong> {visible(action)} <Copy text={action} label="Copy what to do" />
          </span>
        )}
      </span>
    </li>
  );
}

function StoreFacts({ store }: { readonly store: StoreDocument }) {
  const { free_bytes: free, log_bytes: log, dead_rows: deadRows } = store;
  return (
    <Facts
      of={[
        ['Store', <bdi key="store">{visible(store.store)}</bdi>],
        ['Kind', store.kind],
        ['Size', `${inBytes(store.bytes)}${free ? `, ${inBytes(free)} of it free` : ''}`],
        ['Write-ahead log', log !== null && inBytes(log)],
        ['Dead rows', deadRows !== null && `${deadRows.toLocaleString()}, until autovacuum removes them`],
        ['Durability', store.durability === 'full' ? 'full: each commit waits for the disk' : store.durability],
        ['Schema', store.schema_version],
        ['Driver', store.driver],
        ['Holdfast', me.value?.version],
      ]}
    />
  );
}
