import { quoted, visible } from '../../views/visible.ts';
import type { Cli } from '../cli.ts';
import { Problem } from '../problem.ts';
import { nearest } from '../suggest.ts';
import { mayGoOn } from '../terminal/prompt.ts';

/** A source or queue that a person named. */
export interface Named {
  readonly kind: 'source' | 'queue';
  readonly name: string;
  /** The names that the store knows. */
  readonly known: readonly string[];
}

/** The problem for a name that the store does not know. */
export function unknownName(cli: Cli, named: Named, ...hints: readonly string[]): Problem {
  return new Problem('not_found', unknown(named), {
    hints: [...likely(named), ...hints, `all ${named.kind}s: ${cli.command(`${named.kind}s`)}`],
  });
}

/**
 * Whether to go on with a name that the store does not know. It may be meant for future tasks, or it may be a typing error, which
 * would silently do nothing. So a person is asked, and a script needs --yes.
 * @throws Problem if nobody can be asked.
 */
export async function mayBeNew(cli: Cli, named: Named, action: 'hold' | 'pause' | 'order' | 'limit'): Promise<boolean> {
  if (cli.yes || named.known.includes(named.name)) return true;
  const { terminal } = cli;
  if (!terminal.mayAsk) throw unknownName(cli, named, `to ${action} it before its first task, add --yes`);
  for (const line of [unknown(named), ...likely(named)]) terminal.warn(line);
  return mayGoOn(cli, `Do you want to ${action} it before its first task?`);
}

/** The store knows a source since a task of it was first due. */
function unknown({ kind, name }: Named): string {
  const shown = visible(name);
  return kind === 'source' ? `there is no source ${shown}: no task of it was ever due` : `there is no queue ${shown}`;
}

function likely({ name, known }: Named): string[] {
  const names = nearest(name, known).map(quoted);
  return names.length > 0 ? [`did you mean ${names.join(', or ')}?`] : [];
}
