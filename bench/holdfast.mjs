// One program of Holdfast's, in this process: a scenario, or a part of one that needs a process of its own.
//   node holdfast.mjs NAME '{"dir": …, "n": …}'
import * as cli from './scenarios/cli.mjs';
import * as depth from './scenarios/depth.mjs';
import * as drain from './scenarios/drain.mjs';
import * as enqueue from './scenarios/enqueue.mjs';
import * as fail from './scenarios/fail.mjs';
import * as held from './scenarios/held.mjs';
import * as idle from './scenarios/idle.mjs';
import * as memory from './scenarios/memory.mjs';
import * as processes from './scenarios/processes.mjs';
import * as sources from './scenarios/sources.mjs';

const programs = Object.assign(
  {},
  ...[enqueue, drain, fail, idle, processes, depth, held, sources, memory, cli].map((scenario) => scenario.programs),
);

const [name, options] = process.argv.slice(2);
const results = await programs[name](JSON.parse(options));
for (const result of results ?? []) console.log(JSON.stringify(result));
