import { BlockList, isIP } from 'node:net';

/*
 * Addresses of this machine, of private networks, or of nobody, by IANA's registries of special addresses. Of IPv6, only global
 * unicast is allowed, so that newly assigned ranges are refused until somebody has checked them.
 */

const SPECIAL_V4: readonly (readonly [net: string, prefix: number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

const GLOBAL_V6 = '2000::';
const SPECIAL_V6: readonly (readonly [net: string, prefix: number])[] = [
  // Teredo and other experiments, documentation, 6to4: the address that they contain is another one.
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

/** Forms of IPv6 that are an IPv4 address: mapped, and translated by the network (NAT64). */
const WRAPPING = ['::ffff:', '64:ff9b::'] as const;

/** Whether an address, as text, is of this machine or a private network, or is none that a server has. */
export function isPrivateAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  const family = isIP(bare);
  if (family === 0) return true;
  const { special, global } = lists();
  if (family === 4) return special.check(bare, 'ipv4');
  return !global.check(bare, 'ipv6') || special.check(bare, 'ipv6');
}

/** Whether a host's name is one that means this machine wherever it is resolved (RFC 6761). */
export function isLocalName(host: string): boolean {
  return /(?:^|\.)localhost\.?$/i.test(host);
}

interface Lists {
  readonly special: BlockList;
  readonly global: BlockList;
}

let made: Lists | undefined;

function lists(): Lists {
  made ??= makeLists();
  return made;
}

function makeLists(): Lists {
  const special = new BlockList();
  const global = new BlockList();
  global.addSubnet(GLOBAL_V6, 3, 'ipv6');
  for (const prefix of WRAPPING) global.addSubnet(`${prefix}0.0.0.0`, 96, 'ipv6');
  for (const [net, prefix] of SPECIAL_V6) special.addSubnet(net, prefix, 'ipv6');
  for (const [net, prefix] of SPECIAL_V4) {
    special.addSubnet(net, prefix, 'ipv4');
    for (const wrapping of WRAPPING) special.addSubnet(`${wrapping}${net}`, 96 + prefix, 'ipv6');
  }
  return { special, global };
}
