import { describe, expect, test } from 'vitest';
import { locateStore, type Surroundings } from '../../src/cli/store-location.ts';

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

describe('the store', () => {
  test('is what the flag says, before anything else', () => {
    const told = around({
      environment: { HOLDFAST_STORE: '/other.db' },
      folders: { '/home/eva/shop/.holdfast': 1_000 },
    });
    expect(locateStore('x.db', told)).toEqual({ path: '/home/eva/shop/src/x.db', origin: '--store' });
    expect(locateStore('../x.db', told).path).toBe('/home/eva/shop/x.db');
    expect(locateStore('file:///var/lib/my%20store.db', told).path).toBe('/var/lib/my store.db');
  });

  test('else what the environment says', () => {
    const told = around({
      environment: { HOLDFAST_STORE: '/other.db' },
      folders: { '/home/eva/shop/.holdfast': 1_000 },
    });
    expect(locateStore(undefined, told)).toEqual({ path: '/other.db', origin: 'HOLDFAST_STORE' });
  });

  test("else the nearest project's, upwards", () => {
    const folders = { '/home/eva/shop/.holdfast': 1_000, '/home/eva/.holdfast': 1_000 };
    expect(locateStore(undefined, around({ folders }))).toEqual({
      path: '/home/eva/shop/.holdfast/holdfast.db',
      origin: 'project',
    });
  });

  test.each([
    ['linux', {}, '/home/eva/.local/state/holdfast/holdfast.db'],
    ['linux', { XDG_STATE_HOME: '/state' }, '/state/holdfast/holdfast.db'],
    ['linux', { XDG_STATE_HOME: 'relative' }, '/home/eva/.local/state/holdfast/holdfast.db'],
    ['linux', { HOLDFAST_STORE: '' }, '/home/eva/.local/state/holdfast/holdfast.db'],
    ['darwin', {}, '/home/eva/Library/Application Support/holdfast/holdfast.db'],
    ['win32', { LOCALAPPDATA: '/local' }, '/local/holdfast/holdfast.db'],
  ] as const)("else the user's own: %s with %j", (platform, environment, path) => {
    expect(locateStore(undefined, around({ platform, environment }))).toEqual({ path, origin: 'state' });
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

  test.each([
    ['postgres://host/db', '--store cannot be postgres://…: this version opens files only'],
    ['https://host/x.db', '--store cannot be https://…'],
    ['file://host/x.db', '--store is not the URL of a file on this machine: file://host/x.db'],
    [':memory:', '--store :memory: would be forgotten when this command ends'],
    ['', '--store is empty'],
  ])('%s is refused', (flag, why) => {
    expect(() => locateStore(flag, around())).toThrow(why);
  });
});
