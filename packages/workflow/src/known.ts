/**
 * What a map has for a key that must be in it, since the map was made from the same nodes.
 *
 * @throws {RangeError} it is not: the maps belong to different definitions.
 */
export function known<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key): Value {
  const value = map.get(key);
  if (value === undefined) throw new RangeError(`nothing is known of ${String(key)}`);
  return value;
}
