import brokers from './brokers.mjs';
import databases, { skipped } from './databases.mjs';
import httpClients from './http-clients.mjs';
import mailAndFiles from './mail-and-files.mjs';
import programs from './programs.mjs';
import services from './services.mjs';

const ALL = {
  'HTTP clients': httpClients,
  'clients of services': services,
  'mail and files': mailAndFiles,
  databases,
  'brokers and calls': brokers,
  'inside the program': programs,
};

/** Libraries by what they are for; one of which every case is left out is left out itself. */
export const GROUPS = Object.fromEntries(
  Object.entries(ALL).map(([group, libraries]) => [group, libraries.filter(({ cases }) => cases.length > 0)]),
);

/** What is left out on this machine, each with the reason. */
export const SKIPPED = skipped;
