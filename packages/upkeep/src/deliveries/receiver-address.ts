import { lookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { namesThisMachine } from "@holdpoint/protocol";

// Who registers a webhook chooses where this network's requests go. What is refused here is nobody's receiver: the sending
// machine itself (unless it is named as localhost), its link, and where clouds answer with their machines' credentials.
// Judged on the address that is connected to, so that a name which changes in between does not matter.

const LOOPBACK = listOf([
  ["127.0.0.0", 8],
  ["::1", 128],
]);

const REFUSED = listOf([
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["100.100.100.200", 32],
  ["192.0.0.192", 32],
  ["224.0.0.0", 3],
  ["::", 127],
  ["fe80::", 10],
  ["ff00::", 8],
  ["fd00:ec2::", 32],
  ["64:ff9b::a9fe:0", 112],
]);

function listOf(networks: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, familyOf(network));
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

/** Whether a notice for this URL may go to this address. */
function mayReach(url: URL, address: string): boolean {
  return namesThisMachine(url)
    ? LOOPBACK.check(address, familyOf(address))
    : !REFUSED.check(address, familyOf(address));
}

/** Whether a URL names an address, and one that nothing is sent to. A name is judged only when it is looked up. */
export function namesRefusedAddress(url: URL): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return isIP(host) !== 0 && !mayReach(url, host);
}

/** The code of an error that says that nothing is sent there. */
export const ADDRESS_REFUSED = "ADDRESS_REFUSED";

/** Looks a URL's host up, and gives only what may be reached. */
export function guardedLookup(url: URL): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const reachable = addresses.filter(({ address }) => mayReach(url, address));
      const [first] = reachable;
      if (first === undefined) return callback(refused(), []);
      return options.all === true ? callback(null, reachable) : callback(null, first.address, first.family);
    });
  };
}

function refused(): NodeJS.ErrnoException {
  return Object.assign(new Error("Nothing is sent to that address"), { code: ADDRESS_REFUSED });
}
