import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Command, Option } from 'commander';
import { visible } from '../../views/visible.ts';
import type { Exit } from '../action.ts';
import type { Cli } from '../cli.ts';
import { EXIT } from '../exit-codes.ts';
import { Problem, usage } from '../problem.ts';
import { declareSubcommands } from '../subcommands.ts';

const MANAGERS = ['systemd', 'launchd'] as const;
type Manager = (typeof MANAGERS)[number];

interface Flags {
  readonly manager?: Manager;
}

export function declare(command: Command): void {
  const manager = () => new Option('--manager <name>', 'default: that of this system').choices([...MANAGERS]);
  declareSubcommands<Flags>(command, () => Promise.reject(needsSubcommand()), [
    {
      usage: 'print [--manager systemd|launchd] [-- WORKER FLAGS…]',
      summary: 'the file of the service, on stdout',
      alsoCalled: ['show', 'cat'],
      declare: (print) => print.addOption(manager()).argument('[flags...]'),
      action: (cli, flags, options) => print(cli, flags, managerOf(options)),
    },
    {
      usage: 'install [--manager systemd|launchd] [-- WORKER FLAGS…]',
      summary: 'write it for this user, and say how to start it',
      alsoCalled: ['add', 'enable', 'create'],
      declare: (install) => install.addOption(manager()).argument('[flags...]'),
      action: (cli, flags, options) => install(cli, flags, managerOf(options)),
    },
  ]);
  command.addHelpText(
    'after',
    `
The service runs \`holdfast worker\` on the store and the configuration that this command finds: holdfast service print -- --concurrency 8
\`install\` starts nothing and overwrites nothing.`,
  );
}

function needsSubcommand(): Problem {
  return usage('service needs print or install', { hints: ['holdfast service print', 'holdfast service install'] });
}

function managerOf({ manager }: Flags): Manager {
  return manager ?? (process.platform === 'darwin' ? 'launchd' : 'systemd');
}

async function print(cli: Cli, flags: readonly string[], manager: Manager): Promise<void> {
  const text = await textOf(cli, flags, manager);
  cli.terminal.answer('service', { manager, text }, () => cli.terminal.out.raw(text));
}

async function install(cli: Cli, flags: readonly string[], manager: Manager): Promise<Exit> {
  const { file, start } = PLACES[manager];
  const text = await textOf(cli, flags, manager);
  mkdirSync(dirname(file()), { recursive: true });
  try {
    writeFileSync(file(), text, { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Problem('state_conflict', `${visible(file())} exists already`, {
      hints: ['compare it with: holdfast service print', 'to replace it, remove it first'],
    });
  }
  cli.terminal.answer('service.install', { exit: EXIT.done, manager, file: file(), start }, () => {
    cli.terminal.result(`Written: ${visible(file())}`);
    cli.terminal.result(`Start it: ${start}`);
  });
  return EXIT.done;
}

const PLACES: Readonly<Record<Manager, { readonly file: () => string; readonly start: string }>> = {
  systemd: {
    file: () => join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'systemd/user/holdfast.service'),
    start: 'systemctl --user daemon-reload && systemctl --user enable --now holdfast && loginctl enable-linger',
  },
  launchd: {
    file: () => join(homedir(), 'Library/LaunchAgents/holdfast.worker.plist'),
    start: 'launchctl bootstrap gui/$(id -u) ~/Library/LaunchAgents/holdfast.worker.plist',
  },
};

/** A password must not stand in a file that others can read, so it comes from ~/.pgpass or the environment. */
async function textOf(cli: Cli, flags: readonly string[], manager: Manager): Promise<string> {
  const location = await cli.location();
  const config = cli.config();
  const main = fileURLToPath(new URL('../main.js', import.meta.url));
  const store = location.kind === 'file' ? resolve(location.path) : location.name;
  const words = [
    process.execPath,
    main,
    '--store',
    store,
    ...(config ? ['--config', resolve(config.path)] : []),
    'worker',
  ];
  const all = [...words, ...flags];
  return manager === 'systemd' ? systemdUnit(all, cli.cwd) : launchdPlist(all, cli.cwd);
}

function systemdUnit(words: readonly string[], folder: string): string {
  const quoted = words.map(
    (word) => `"${word.replaceAll(/["\\]/g, '\\$&').replaceAll('%', '%%').replaceAll('$', '$$$$')}"`,
  );
  return `[Unit]
Description=Holdfast worker
StartLimitIntervalSec=0

[Service]
Type=exec
WorkingDirectory=${folder.replaceAll('%', '%%')}
ExecStart=${quoted.join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
Restart=always
RestartSec=5
RestartPreventExitStatus=${EXIT.badConfig}
KillMode=mixed
TimeoutStopSec=45

[Install]
WantedBy=default.target
`;
}

function launchdPlist(words: readonly string[], folder: string): string {
  const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>holdfast.worker</string>
  <key>WorkingDirectory</key><string>${escaped(folder)}</string>
  <key>ProgramArguments</key>
  <array>
${words.map((word) => `    <string>${escaped(word)}</string>`).join('\n')}
  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><true/>
  <key>ExitTimeOut</key><integer>45</integer>
</dict>
</plist>
`;
}
