// SPDX-License-Identifier: MIT
// packed.ts - a column of whole numbers written as text (docs/profile-format.md): half the bytes of a list, and read
// several times as fast, which is most of the time that a large profile takes to open. Pure.

const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MORE = 32;
/** No sign at all, which also ends a number. */
const NONE = 64;
const VALUES = new Uint8Array(256).fill(NONE);
[...SIGNS].forEach((sign, value) => (VALUES[sign.charCodeAt(0)] = value));

/** The lowest bit is the sign, and minus zero is unknown. */
const signed = (v: number): number => (v & 1 ? (v === 1 ? NaN : -(v >>> 1)) : v >>> 1);

/** More than thirty bits: beyond what shifts can hold. */
function signedLarge(low: number, high: number): number {
  const size = Math.floor(low / 2) + high * 2 ** 29;
  return low & 1 ? -size : size;
}

/** The numbers of a text; null: it holds a sign that is none, or ends within a number. */
export function unpack(text: string): Float64Array | null {
  const signs = new TextEncoder().encode(text);
  const end = signs.length;
  if (end && VALUES[signs[end - 1]!]! & MORE) return null;
  const out = new Float64Array(end);
  let n = 0;
  let wrong = 0;
  for (let i = 0; i < end; n++) {
    let digit = VALUES[signs[i++]!]!;
    wrong |= digit;
    let low = digit & 31;
    for (let shift = 5; digit & MORE && shift < 30; shift += 5) {
      wrong |= digit = VALUES[signs[i++]!]!;
      low |= (digit & 31) << shift;
    }
    let high = 0;
    for (let weight = 1; digit & MORE; weight *= 32) {
      wrong |= digit = VALUES[signs[i++]!]!;
      high += (digit & 31) * weight;
    }
    out[n] = high ? signedLarge(low, high) : signed(low);
  }
  return wrong & NONE ? null : out.subarray(0, n);
}
