/** The programs of a PostgreSQL server: `bin/initdb` and `bin/postgres` below `root`. */
export interface Binaries {
  readonly kind: 'debian' | 'embedded';
  readonly root: string;
}

export function findBinaries(where?: {
  readonly kind?: string | undefined;
  /** The folder of Debian's servers. */
  readonly debian?: string;
  /** A file from which the embedded one is looked for. */
  readonly from?: string;
}): Binaries;

export function reachable(binaries: Binaries, folder: string): Binaries;
