// SPDX-License-Identifier: MIT
// Tiles.tsx - the few numbers that stand first, each with what makes it honest.
import type { Tile } from "../data/headline";
import { shown } from "./format";

/** A number with its unit: the unit stands back. */
function Quantity(props: { text: string }) {
  const [value, unit] = props.text.split("\u00a0");
  return (
    <>
      {shown(value, 40)}
      {unit && <small> {shown(unit, 40)}</small>}
    </>
  );
}

export function Tiles(props: { tiles: Tile[] }) {
  const { tiles } = props;
  if (!tiles.length) return null;
  return (
    <dl class="tiles">
      {tiles.map((t) => (
        <div>
          <dt>{t.name}</dt>
          <dd>
            <Quantity text={t.value} />
          </dd>
          <dd class="detail">{shown(t.detail, 160)}</dd>
        </div>
      ))}
    </dl>
  );
}
