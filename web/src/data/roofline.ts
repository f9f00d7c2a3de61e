// SPDX-License-Identifier: MIT
// roofline.ts - layers by how much arithmetic they do per byte, against what this machine was measured to reach. Pure.
import type { GpuRoof, Layer, Roof } from "./page";

export interface RoofPoint {
  name: string;
  op: string;
  /** Operations per byte. */
  intensity: number;
  /** Operations per second. */
  rate: number;
  /** Of the run's time. */
  share: number;
  roofShare: number | null;
  bound: string | null;
}

export interface Ceiling {
  label: string;
  /** Operations per second, flat part. */
  peak: number;
  /** Operations per byte from which on memory is not the limit. */
  ridge: number;
}

export interface Roofline {
  points: RoofPoint[];
  ceilings: Ceiling[];
  bandwidth: number;
  /** Layers that are timed but have no arithmetic: they cannot be placed. */
  unplaced: number;
}

const above = (v: number | null | undefined): v is number => typeof v === "number" && v > 0 && Number.isFinite(v);

/** Layers that were timed by their operations on a GPU belong under the GPU's roof, not under that of the processors. */
export function roofFor(layers: Layer[], roof: Roof | null | undefined, gpu: GpuRoof | null | undefined): Roof | null {
  if (!layers.some((l) => above(l.operations))) return roof ?? null;
  const fp32 = Math.max(gpu?.fp32?.value ?? 0, gpu?.tf32?.value ?? 0);
  if (!gpu || !above(fp32) || !above(gpu.bandwidth?.value)) return null;
  return {
    threads: null,
    flops: fp32,
    int_ops: gpu.int8?.value ?? null,
    bandwidth: gpu.bandwidth.value,
    measured: gpu.measured ?? null,
  };
}

function pointOf(l: Layer): RoofPoint | null {
  if (!above(l.intensity) || !above(l.rate)) return null;
  return {
    name: l.name,
    op: l.op ?? "",
    intensity: l.intensity,
    rate: l.rate,
    share: l.share ?? 0,
    roofShare: l.roof_share ?? null,
    bound: l.bound ?? null,
  };
}

/** null: the roof of the machine was not measured, or no layer can be placed under it. */
export function rooflineOf(layers: Layer[], roof: Roof | null | undefined): Roofline | null {
  if (!roof || !above(roof.flops) || !above(roof.bandwidth)) return null;
  const points = layers.map(pointOf).filter((p): p is RoofPoint => p !== null);
  if (!points.length) return null;
  const ceilings = [{ label: "fp32", peak: roof.flops, ridge: roof.flops / roof.bandwidth }];
  if (above(roof.int_ops) && layers.some((l) => above(l.int_macs)))
    ceilings.push({ label: "int8", peak: roof.int_ops, ridge: roof.int_ops / roof.bandwidth });
  const timed = layers.filter((l) => above(l.time_ns)).length;
  return {
    points: points.sort((a, b) => b.share - a.share),
    ceilings,
    bandwidth: roof.bandwidth,
    unplaced: Math.max(0, timed - points.length),
  };
}

/** Operations per second that the roof allows at an intensity. */
export const allowed = (c: Ceiling, bandwidth: number, intensity: number): number => Math.min(c.peak, bandwidth * intensity);
