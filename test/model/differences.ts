/** What should be there once each, against what is. */
export function differences(what: string, expected: readonly string[], there: readonly string[]): readonly string[] {
  const counted = new Map<string, number>();
  for (const each of there) counted.set(each, (counted.get(each) ?? 0) + 1);
  return [
    ...expected.filter((each) => !counted.has(each)).map((each) => `${what} ${each} is missing`),
    ...[...counted].filter(([each]) => !expected.includes(each)).map(([each]) => `nobody has sent ${what} ${each}`),
    ...[...counted].filter(([, count]) => count > 1).map(([each, count]) => `${what} ${each} is there ${count} times`),
  ];
}
