import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { BigIntStats } from 'node:fs';
import { type FileHandle, lchown, lstat, lutimes } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { hasCode } from './move-facts.ts';

/** What file systems answer that do not keep an owner, a mode or times: FAT, CIFS, SMB, drvfs, FUSE. */
const NOT_KEPT = ['EPERM', 'EACCES', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/** Times that are coarser than this are not called lost. */
const COARSEST_NS = 2_000_000_000n;

/**
 * Gives a copy the owner, mode, times, extended attributes and ACL of its source, as far as its file system takes them. Owner first:
 * changing it clears setuid, and a file that stays ours must not become setuid as us.
 * @returns what could not be kept, as text.
 */
export async function copyAttributes(reader: FileHandle, writer: FileHandle, source: BigIntStats): Promise<string[]> {
  const ours = await writer.stat({ bigint: true });
  let owned = true;
  if (ours.uid !== source.uid || ours.gid !== source.gid) {
    owned = await kept(writer.chown(Number(source.uid), Number(source.gid)));
  }
  const special = (Number(source.mode) & 0o7000) !== 0;
  const others = await copyOthers(reader, writer, owned || !special);
  await kept(writer.chmod(Number(source.mode) & (owned ? 0o7777 : 0o777)));
  const dressed = await writer.stat({ bigint: true });
  if (dressed.mtimeNs !== source.mtimeNs) await kept(writer.utimes(seconds(source.atimeNs), seconds(source.mtimeNs)));
  return [...lostOf(await writer.stat({ bigint: true }), source), ...others];
}

/** The same for a symbolic link, which has no mode and, for us, no attributes. */
export async function copyLinkAttributes(path: string, source: BigIntStats): Promise<string[]> {
  await kept(lutimes(path, seconds(source.atimeNs), seconds(source.mtimeNs)));
  const ours = await lstat(path, { bigint: true });
  if (ours.uid !== source.uid || ours.gid !== source.gid) {
    await kept(lchown(path, Number(source.uid), Number(source.gid)));
  }
  const now = await lstat(path, { bigint: true });
  return lostOf(now, { ...source, mode: now.mode });
}

/** The sentence that a result carries. */
export function noteOf(lost: readonly string[]): string | undefined {
  if (lost.length === 0) return undefined;
  const last = lost.at(-1) as string;
  const all = lost.length === 1 ? last : `${lost.slice(0, -1).join(', ')} and ${last}`;
  return `Not kept at the destination: ${all}.`;
}

/** Reads them back, because some file systems accept everything and keep nothing. */
function lostOf(
  now: Pick<BigIntStats, 'uid' | 'gid' | 'mode' | 'mtimeNs'>,
  source: Pick<BigIntStats, 'uid' | 'gid' | 'mode' | 'mtimeNs'>,
): string[] {
  const lost: string[] = [];
  if (now.uid !== source.uid || now.gid !== source.gid) lost.push('its owner');
  if ((now.mode & 0o7777n) !== (source.mode & 0o7777n)) lost.push('its mode');
  const late = now.mtimeNs - source.mtimeNs;
  if ((late < 0n ? -late : late) >= COARSEST_NS) lost.push('its times');
  return lost;
}

/**
 * Extended attributes, ACLs and times to the nanosecond are out of Node's reach, so GNU cp copies them, where there is one. It is given
 * the open files and no names, so that nobody can put another file in their place.
 */
async function copyOthers(reader: FileHandle, writer: FileHandle, withMode: boolean): Promise<string[]> {
  if (process.platform !== 'linux') return [UNKNOWN];
  const preserve = withMode ? 'mode,timestamps,xattr' : 'timestamps,xattr';
  try {
    const copying = ['cp', '--attributes-only', `--preserve=${preserve}`, '/proc/self/fd/3', '/proc/self/fd/4'];
    // In the language in which `complaints` reads.
    const child = spawn('env', ['LC_ALL=C', ...copying], { stdio: ['ignore', 'ignore', 'pipe', reader.fd, writer.fd] });
    const [said, [code]] = await Promise.all([child.stderr ? text(child.stderr) : '', once(child, 'close')]);
    return code === 0 ? [] : complaints(said);
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'EACCES')) return [UNKNOWN];
    throw error;
  }
}

const UNKNOWN = 'its extended attributes and ACL, if it had any';

/** What `cp` said that it could not keep. Mode and times are looked at afterwards. */
function complaints(said: string): string[] {
  if (/setting attribute|extended attribute/i.test(said)) return ['its extended attributes'];
  if (/preserving permissions/i.test(said)) return ['its ACL, if it had one'];
  return /preserving times/i.test(said) ? [] : [UNKNOWN];
}

/** Whether it was done; false where the file system keeps no such thing. */
async function kept(doing: Promise<void>): Promise<boolean> {
  try {
    await doing;
    return true;
  } catch (error) {
    if (!hasCode(error, ...NOT_KEPT)) throw error;
    return false;
  }
}

function seconds(nanoseconds: bigint): number {
  return Number(nanoseconds) / 1e9;
}
