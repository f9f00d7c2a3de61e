// SPDX-License-Identifier: MIT
// proof.tsx - the recommendation measured in turns with what it replaces: baseline, candidate, pairs, ratios with their
// intervals, the verdict, and the command that measures it again.
import type { Item, RunDocument } from "../data/page";
import { proofRows } from "../data/proof";
import type { Section, SectionProps } from "../sections";
import { Badge } from "../ui/Facts";
import { shown } from "../ui/format";

function Proof(props: SectionProps) {
  const advice = (props.item.document as RunDocument).recommendation!;
  return (
    <>
      <p>
        Measured in turns with what is used today <Badge word={advice.proof!.verdict} />
      </p>
      <dl class="evidence">
        {proofRows(advice).map((r) => (
          <div>
            <dt>{shown(r.name, 80)}</dt>
            <dd>{r.name === "again" ? <code>{shown(r.value, 600)}</code> : shown(r.value, 200)}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

export const proof: Section = {
  id: "proof",
  title: "Proof",
  applies: (item: Item) => item.kind === "run" && Boolean((item.document as RunDocument).recommendation?.proof),
  Component: Proof,
};
