// SPDX-License-Identifier: MIT
// width.ts - how wide a box is, and after every change.
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

/** 0 until it is known; `otherwise` where the page has no layout. */
export function useWidth(box: RefObject<HTMLElement | null>, otherwise = 0): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const el = box.current!;
    const look = () => setWidth(el.clientWidth || otherwise);
    const watch = new ResizeObserver(look);
    look();
    watch.observe(el);
    return () => watch.disconnect();
  }, []);
  return width;
}
