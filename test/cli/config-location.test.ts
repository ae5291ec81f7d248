import { describe, expect, test } from 'vitest';
import { locateConfig } from '../../src/cli/opening/config-location.ts';

function found(files: readonly string[], more: { flag?: string; project?: string; xdg?: string } = {}) {
  const { flag, project, xdg } = more;
  return locateConfig(flag, {
    environment: { XDG_CONFIG_HOME: xdg },
    cwd: '/home/eva/shop/src',
    home: '/home/eva',
    project,
    isFile: (path) => files.includes(path),
  });
}

describe('the configuration', () => {
  test('is the one that a flag names, whether it is there or not', () => {
    expect(found(['/home/eva/shop/src/holdfast.yaml'], { flag: 'b.yaml' })).toEqual({
      path: '/home/eva/shop/src/b.yaml',
      origin: '--config',
    });
    expect(() => found([], { flag: '' })).toThrow('--config is empty');
  });

  test('is the one in the current folder, YAML before JSON', () => {
    const [yaml, yml, json] = ['yaml', 'yml', 'json'].map((end) => `/home/eva/shop/src/holdfast.${end}`) as [
      string,
      string,
      string,
    ];
    expect(found([json, yml, yaml])?.path).toBe(yaml);
    expect(found([json, yml])?.path).toBe(yml);
    expect(found([json])).toEqual({ path: json, origin: 'folder' });
  });

  test('is the one of the project, whose store a command in a folder below it uses too', () => {
    const project = { project: '/home/eva/shop' };
    expect(found(['/home/eva/shop/holdfast.yaml'], project)).toEqual({
      path: '/home/eva/shop/holdfast.yaml',
      origin: 'project',
    });
    expect(found(['/home/eva/shop/holdfast.yaml', '/home/eva/shop/src/holdfast.json'], project)?.origin).toBe('folder');
    expect(found(['/home/eva/shop/holdfast.yaml'])).toBeUndefined();
  });

  test("is the user's own where there is no other, and none where there is none at all", () => {
    expect(found(['/home/eva/.config/holdfast/config.yaml'])).toMatchObject({ origin: 'user' });
    expect(found(['/cfg/holdfast/config.yaml'], { xdg: '/cfg' })).toMatchObject({ origin: 'user' });
    expect(found(['/home/eva/.config/holdfast/config.yaml'], { xdg: 'relative' })).toMatchObject({ origin: 'user' });
    expect(found([])).toBeUndefined();
  });
});
