import './styles/main.css';
import { render } from 'preact';
import { followAddress } from './data/address.ts';
import { followClock } from './data/clock.ts';
import { followChanges } from './data/live.ts';
import { followStatus } from './data/status.ts';
import { followKeys } from './shell/keys.ts';
import { Shell, setKeysOfShell } from './shell/shell.tsx';

followAddress();
followClock();
followChanges();
followStatus();
followKeys();
setKeysOfShell();
render(<Shell />, document.getElementById('app') as HTMLElement);
