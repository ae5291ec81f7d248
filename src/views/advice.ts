/** What a person can do about a reason, in a sentence. */
const BY_REASON: Readonly<Record<string, string>> = {
  'fs.dest_exists': 'Something stands at the destination already. Compare the two, and move or remove one of them.',
  'fs.permission': 'This user has no permission. Change the owner or the mode (ls -ld shows them).',
  'fs.locked': 'Another program has it open. Find that program (lsof, fuser) and let it finish.',
  'fs.not_found': 'It does not exist. Put it back, or mount its file system.',
  'fs.no_space': 'The disk is full. Free some space.',
  'fs.cross_device_folder':
    'A folder is not moved to another file system in one step. Copy it, compare, remove the original.',
  'fs.no_hard_links': 'The file system there cannot take it without the risk of overwriting. Move it by hand (mv -n).',
  'fs.same_file': 'Source and destination are the same file.',
  'process.not_found': 'There is no such program on the PATH of the worker.',
  'process.not_executable': 'The program must not be executed. Check its mode and the mode of its folder.',
  'process.cwd_missing': 'The folder that it runs in does not exist. Put it back, or mount its file system.',
  'process.usage': 'The command reports wrong arguments.',
  'http.private_address':
    'The host is on this machine or a private network. If that is intended, record it again with --allow-private.',
  'http.secret_missing': 'Give the worker the variable or file that the header names, then retry.',
  'http.redirect': 'The server redirects the request. Check the new address.',
  'http.5xx': 'The server failed after it may have acted. Check there, then resolve or retry.',
  'task.corrupt': 'Its row in the store is damaged. Restore it from a backup, or cancel it and record it again.',
  'worker.crash_loop': 'Its worker died each time it ran. Check memory and what it does before you retry it.',
  'worker.interrupted': 'It was interrupted while it ran. Check whether its effect happened, then resolve it.',
  'worker.lost': 'Its worker died while it ran. Check whether its effect happened, then resolve it.',
  'deadline.passed': 'Its deadline has passed.',
  timeout: 'It ran into its time limit.',
};

/** As `BY_REASON`, of several tasks, where that speaks of one. */
const OF_SEVERAL: Readonly<Record<string, string>> = {
  'task.corrupt':
    'Their rows in the store are damaged. Restore them from a backup, or cancel them and record them again.',
  'worker.crash_loop': 'Their workers died each time they ran. Check memory and what they do before you retry them.',
  'worker.interrupted':
    'They were interrupted while they ran. Check whether their effects happened, then resolve them.',
  'worker.lost': 'Their worker died while they ran. Check whether their effects happened, then resolve them.',
  'deadline.passed': 'Their deadlines have passed.',
  timeout: 'They ran into their time limits.',
};

/** What a person should look at, if there is more to say than its message does. */
export function adviceFor(reason: string | undefined, count = 1): string | undefined {
  if (count > 1 && reason !== undefined && Object.hasOwn(OF_SEVERAL, reason)) return OF_SEVERAL[reason];
  return reason !== undefined && Object.hasOwn(BY_REASON, reason) ? BY_REASON[reason] : undefined;
}
