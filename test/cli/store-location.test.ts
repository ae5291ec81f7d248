import { describe, expect, test } from 'vitest';
import {
  locateStore,
  type StoreLocation,
  type Surroundings,
  withoutPassword,
} from '../../src/cli/opening/store-location.ts';

const around = (
  more: Partial<Surroundings> & { folders?: Readonly<Record<string, number | null>> } = {},
): Surroundings => ({
  environment: {},
  cwd: '/home/eva/shop/src',
  home: '/home/eva',
  platform: 'linux',
  user: 1_000,
  ownerOf: (path) => (more.folders && Object.hasOwn(more.folders, path) ? more.folders[path] : undefined),
  ...more,
});

const file = (path: string, origin: StoreLocation['origin']) => ({ kind: 'file', path, name: path, origin });

describe('the store', () => {
  test('is what the flag says, before anything else', () => {
    const told = around({
      environment: { HOLDFAST_STORE: '/other.db' },
      folders: { '/home/eva/shop/.holdfast': 1_000 },
    });
    expect(locateStore('x.db', told)).toEqual(file('/home/eva/shop/src/x.db', '--store'));
    expect(locateStore('../x.db', told).name).toBe('/home/eva/shop/x.db');
    expect(locateStore('file:///var/lib/my%20store.db', told).name).toBe('/var/lib/my store.db');
  });

  test('else what the environment says', () => {
    const told = around({
      environment: { HOLDFAST_STORE: '/other.db' },
      folders: { '/home/eva/shop/.holdfast': 1_000 },
    });
    expect(locateStore(undefined, told)).toEqual(file('/other.db', 'HOLDFAST_STORE'));
  });

  test("else the nearest project's, upwards", () => {
    const folders = { '/home/eva/shop/.holdfast': 1_000, '/home/eva/.holdfast': 1_000 };
    expect(locateStore(undefined, around({ folders }))).toEqual(
      file('/home/eva/shop/.holdfast/holdfast.db', 'project'),
    );
  });

  test.each([
    ['linux', {}, '/home/eva/.local/state/holdfast/holdfast.db'],
    ['linux', { XDG_STATE_HOME: '/state' }, '/state/holdfast/holdfast.db'],
    ['linux', { XDG_STATE_HOME: 'relative' }, '/home/eva/.local/state/holdfast/holdfast.db'],
    ['linux', { HOLDFAST_STORE: '' }, '/home/eva/.local/state/holdfast/holdfast.db'],
    ['darwin', {}, '/home/eva/Library/Application Support/holdfast/holdfast.db'],
    ['win32', { LOCALAPPDATA: '/local' }, '/local/holdfast/holdfast.db'],
  ] as const)("else the user's own: %s with %j", (platform, environment, path) => {
    expect(locateStore(undefined, around({ platform, environment }))).toEqual(file(path, 'state'));
  });

  test('of a stranger is not taken without being named: it holds commands to run', () => {
    const folders = { '/home/eva/.holdfast': 1_001 };
    expect(() => locateStore(undefined, around({ folders }))).toThrow('/home/eva/.holdfast belongs to another user');
    expect(locateStore('/home/eva/.holdfast/holdfast.db', around({ folders })).origin).toBe('--store');
  });

  test('of root, or where nobody owns anything, is taken', () => {
    expect(locateStore(undefined, around({ folders: { '/home/eva/.holdfast': 0 } })).origin).toBe('project');
    expect(locateStore(undefined, around({ folders: { '/home/eva/.holdfast': null }, user: null })).origin).toBe(
      'project',
    );
  });

  test('is in PostgreSQL where a URL says so, and is called without who connects', () => {
    const url = 'postgres://eva:secret@db.example:5433/app?sslmode=require';
    expect(locateStore(undefined, around({ environment: { HOLDFAST_STORE: url } }))).toEqual({
      kind: 'postgres',
      url,
      name: 'postgres://db.example:5433/app',
      origin: 'HOLDFAST_STORE',
      output: expect.stringMatching(/^\/home\/eva\/.local\/state\/holdfast\/output\/db.example-5433-app-[0-9a-f]{8}$/),
    });
    const told = around({ environment: { HOLDFAST_STORE: 'postgresql:///app?host=/run/pg' } });
    expect(locateStore(undefined, told).name).toBe('postgres:///run/pg/app');
  });

  describe('is what the configuration says', () => {
    const config = {
      store: 'tasks.db',
      file: '/home/eva/shop/holdfast.yaml',
      origin: 'project',
      owner: 1_000,
    } as const;
    const folders = { '/home/eva/shop/.holdfast': 1_000 };

    test('before the project, from the folder of the file', () => {
      expect(locateStore(undefined, around({ folders }), config)).toEqual(file('/home/eva/shop/tasks.db', 'config'));
      expect(locateStore('x.db', around({ folders }), config).origin).toBe('--store');
    });

    test("after the project where it is the user's own", () => {
      const own = { ...config, file: '/home/eva/.config/holdfast/config.yaml', origin: 'user' } as const;
      expect(locateStore(undefined, around({ folders }), own).origin).toBe('project');
      expect(locateStore(undefined, around(), own).name).toBe('/home/eva/.config/holdfast/tasks.db');
    });

    test('and not where it is a stranger’s that nobody named', () => {
      const strange = { ...config, owner: 1_001 };
      expect(() => locateStore(undefined, around(), strange)).toThrow(
        '/home/eva/shop/holdfast.yaml belongs to another user',
      );
      expect(locateStore(undefined, around(), { ...strange, origin: '--config' }).origin).toBe('config');
    });
  });

  test.each([
    ['mysql://eva:secret@host/db', '--store cannot be mysql://…'],
    ['postgres:app', '--store is no URL of PostgreSQL'],
    ['postgres://eva:se#cret@host/db', '--store is no URL of PostgreSQL'],
    ['postgres://eva:1/secret@host/db', '--store is no URL of PostgreSQL'],
    ['https://host/x.db', '--store cannot be https://…'],
    ['file://host/x.db', '--store is not the URL of a file on this machine: file://host/x.db'],
    [':memory:', '--store :memory: would be forgotten when this command ends'],
    ['', '--store is empty'],
    ['postgres://eva:secret@db/app', '--store holds a password'],
    ['postgres://db/app?user=eva&password=secret', '--store holds a password'],
  ])('%s is refused', (flag, why) => {
    expect(() => locateStore(flag, around())).toThrow(why);
    expect(() => locateStore(flag, around())).not.toThrow('secret');
  });
});

test.each([
  ['x.db', 'x.db'],
  ['postgres://eva:secret@db/app?sslmode=require', 'postgres://eva@db/app?sslmode=require'],
  ['postgres://db/app?user=eva&password=secret', 'postgres://db/app?user=eva'],
])('%s is typed again without its password', (text, typed) => {
  expect(withoutPassword(text)).toBe(typed);
});
