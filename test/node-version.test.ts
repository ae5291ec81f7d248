import { expect, test } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { nodeProblem } from '../src/node-version.ts';

test.each(['18.20.8', '20.18.3', '16.0.0'])('Node %s is refused with the next step', (version) => {
  expect(nodeProblem(version)).toMatch(`needs Node 20.19 or later, and this is Node ${version}. Install a newer Node`);
  expect(packageJson.engines.node).toBe('>=20.19');
});

test.each(['20.19.0', '20.20.2', '22.0.0', '24.1.0'])('Node %s is supported', (version) => {
  expect(nodeProblem(version)).toBeUndefined();
});
