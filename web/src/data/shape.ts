// SPDX-License-Identifier: MIT
// shape.ts - a document held against the table of its members (document.gen.ts): a member of another kind than the table
// says is left out, which is unknown to everybody who reads it. Members the table does not name stay as they are.

import { CASE, type Leaf, RUN, type Shape } from "./document.gen";

export type { Shape };
type Members = { readonly [member: string]: Shape };

/** A run as a page holds it: its writer has decoded the samples. */
export const RUN_WITH_SAMPLES: Shape = {
  ...(RUN as Members),
  cases: [{ ...(CASE as Members), samples_ns: "numbers", samples_kept: "text" }],
};

type Loose = Record<string, unknown>;

const isNumber = (v: unknown): v is number => typeof v === "number" && Number.isFinite(v);

const LEAVES: Record<Leaf, (v: unknown) => unknown> = {
  text: (v) => (typeof v === "string" ? v : undefined),
  number: (v) => (isNumber(v) ? v : undefined),
  flag: (v) => (typeof v === "boolean" ? v : undefined),
  numbers: (v) => (!Array.isArray(v) ? undefined : v.every(isNumber) ? v : v.filter(isNumber)),
};

function shapedMembers(of: Loose, shape: Members): Loose {
  const out: Loose = { ...of };
  for (const key of "*" in shape ? Object.keys(of) : Object.keys(shape))
    if (out[key] !== undefined && out[key] !== null) out[key] = shaped(out[key], shape["*"] ?? shape[key]!);
  return out;
}

/** The value as its shape says, or undefined. */
export function shaped(value: unknown, shape: Shape): unknown {
  if (typeof shape === "string") return LEAVES[shape](value);
  if (Array.isArray(shape))
    return Array.isArray(value) ? value.map((v) => shaped(v, shape[0])).filter((v) => v !== undefined) : undefined;
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? shapedMembers(value as Loose, shape as Members) : undefined;
}
