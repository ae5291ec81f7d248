// @ts-check
import { githubRepository } from './connectors/github-repository.js';
import { imapMailbox } from './connectors/imap-mailbox.js';
import { localFiles } from './connectors/local-files.js';
import { obsidianVault } from './connectors/obsidian-vault.js';

/**
 * The four connectors. How each is retried is in holdfast.yaml.
 * @param {import('./documents.js').Documents} documents where they put what they read
 * @param {{ imap: import('./connectors/imap-mailbox.js').MailServer, github?: Parameters<typeof githubRepository>[1], onFile?: (path: string) => void }} options
 */
export function connectors(documents, { imap, github, onFile }) {
  return {
    localFiles: localFiles(documents, onFile),
    obsidianVault: obsidianVault(documents, onFile),
    imapMailbox: imapMailbox(documents, imap),
    githubRepository: githubRepository(documents, github),
  };
}
