// SPDX-License-Identifier: MIT
// pack.ts - numbers as src/report/pack_text.c writes them, for tests.
const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

export function pack(values: number[]): string {
  return values
    .map((v) => {
      let rest = Number.isNaN(v) ? 1 : Math.abs(v) * 2 + (v < 0 ? 1 : 0);
      let text = "";
      do {
        const digit = rest % 32;
        rest = Math.floor(rest / 32);
        text += SIGNS[rest ? digit + 32 : digit];
      } while (rest);
      return text;
    })
    .join("");
}
