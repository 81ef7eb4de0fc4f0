import { expect, test } from "vitest";
import { money } from "../src/show/money.ts";

test.each([
  ["3000", "EUR", "30.00 EUR"],
  ["5", "eur", "0.05 EUR"],
  ["0", "USD", "0.00 USD"],
  ["-120", "EUR", "-1.20 EUR"],
  ["3000", "JPY", "3000 JPY"],
  ["1234", "BHD", "1.234 BHD"],
  ["900719925474099300", "EUR", "9007199254740993.00 EUR"],
  ["30.00", "EUR", "30.00 EUR (in the smallest unit)"],
  ["much", "EUR", "much EUR (in the smallest unit)"],
  ["3000", "\u001b[2J", "3000 \ufffd[2J (in the smallest unit)"],
])("%s of %s is %s", (minor, currency, shown) => {
  expect(money({ minor, currency })).toBe(shown);
});
