// @ts-check
import { defineTask } from 'holdfast';
import { ImapFlow } from 'imapflow';

/**
 * A mail server and who reads there.
 * @typedef {{ host: string, port: number, secure: boolean, password: string }} MailServer
 */

/**
 * Reads the new messages of a mailbox. Each mailbox of each user is a source of its own. What imapflow throws is thrown as it is.
 * @param {import('../documents.js').Documents} documents
 * @param {MailServer} server
 */
export function imapMailbox(documents, { host, port, secure, password }) {
  return defineTask('imap_mailbox', {
    /** @param {{ user: string, mailbox: string }} input */
    source: ({ user, mailbox }) => `imap:${user}@${host}/${mailbox}`,
    /** @param {{ user: string, mailbox: string }} input */
    async run({ user, mailbox }, { source, signal }) {
      const before = await documents.of(source);
      const client = new ImapFlow({ host, port, secure, auth: { user, pass: password }, logger: false });
      // An error of the connection also rejects the call that waits for it.
      client.on('error', () => {});
      const close = () => client.close();
      signal.addEventListener('abort', close);
      try {
        await client.connect();
        const { uidValidity } = await client.mailboxOpen(mailbox, { readOnly: true });
        // With another validity, the server has numbered its messages anew.
        const known = before.position === String(uidValidity) ? before.documents : [];
        const last = Math.max(0, ...known.map(({ id }) => Number(id)));
        const found = [];
        for await (const { uid, envelope } of client.fetch(`${last + 1}:*`, { envelope: true }, { uid: true })) {
          // `5:*` names the last message where there is no fifth one.
          if (uid <= last) continue;
          found.push({ id: String(uid), version: envelope?.messageId ?? '', title: envelope?.subject ?? '' });
        }
        await client.logout();
        return documents.replace(source, before, { documents: [...known, ...found], position: String(uidValidity) });
      } finally {
        signal.removeEventListener('abort', close);
        client.close();
      }
    },
  });
}
