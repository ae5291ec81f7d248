import { ImapFlow } from 'imapflow';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Dovecot } from './dovecot.js';
import { openScene } from './scene.js';

let mail: Dovecot;
beforeAll(async () => {
  mail = await Dovecot.open();
});
afterAll(() => mail?.close());

test('a mailbox is read from where the last reading ended', async () => {
  const { kit, tasks, documents, story } = await openScene({ mail });
  const read = async () => {
    const { id } = await kit.holdfast.enqueue(tasks.imapMailbox, { user: 'ada', mailbox: 'INBOX' });
    await kit.drain();
    return story(id);
  };
  mail.deliver('ada', 'One');
  mail.deliver('ada', 'Two');
  expect(await read()).toMatchObject({ state: 'succeeded', result: { read: 2, unchanged: 0 } });
  expect(await read()).toMatchObject({ state: 'succeeded', result: { read: 0, unchanged: 2 } });
  mail.deliver('ada', 'Three');
  expect(await read()).toMatchObject({ state: 'succeeded', result: { read: 1, unchanged: 2 } });
  const { documents: found } = await documents.of('imap:ada@127.0.0.1/INBOX');
  expect(found.map(({ id, title }) => [id, title])).toEqual([
    ['1', 'One'],
    ['2', 'Two'],
    ['3', 'Three'],
  ]);
});

test('a wrong password and a missing mailbox are permanent: dead at once', async () => {
  const { kit, tasks, story } = await openScene({ mail: { port: mail.port, password: 'guessed' } });
  const { id } = await kit.holdfast.enqueue(tasks.imapMailbox, { user: 'ada', mailbox: 'INBOX' });
  await kit.drain();
  expect(await story(id)).toMatchObject({ state: 'dead', reason: 'auth.invalid', executions: 1 });
  const known = await openScene({ mail });
  const missing = await known.kit.holdfast.enqueue(known.tasks.imapMailbox, { user: 'ada', mailbox: 'Nowhere' });
  await known.kit.drain();
  expect(await known.story(missing.id)).toMatchObject({ state: 'dead', reason: 'not_found', executions: 1 });
});

test('a server that accepts no more connections of a user is a limit, and is asked again', async () => {
  const { kit, tasks, story } = await openScene({ mail });
  mail.deliver('bob', 'One');
  const auth = { user: 'bob', pass: 'secret' };
  const other = new ImapFlow({ host: '127.0.0.1', port: mail.port, secure: false, auth, logger: false });
  await other.connect();
  const { id } = await kit.holdfast.enqueue(tasks.imapMailbox, { user: 'bob', mailbox: 'INBOX' });
  await kit.drain();
  await other.logout();
  expect(await story(id)).toMatchObject({ state: 'scheduled', reason: 'throttled' });
  await kit.advance('13m');
  expect(await story(id)).toMatchObject({ state: 'succeeded', executions: 2 });
});

test('an outage of the server is transient: eight executions over about two hours, and a success in between ends it', async () => {
  const { kit, tasks, story } = await openScene({ mail });
  mail.deliver('cy', 'One');
  await mail.stop();
  const input = { user: 'cy', mailbox: 'INBOX' };
  const lost = await kit.holdfast.enqueue(tasks.imapMailbox, input);
  await kit.advance('3h');
  expect(await story(lost.id)).toMatchObject({ state: 'dead', reason: 'net.refused', attempts: 8, executions: 8 });
  const { id } = await kit.holdfast.enqueue(tasks.imapMailbox, input);
  await kit.advance('10m');
  await mail.start();
  await kit.advance('1h');
  expect(await story(id)).toMatchObject({ state: 'succeeded', result: { read: 1 } });
});
