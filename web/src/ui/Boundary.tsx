// SPDX-License-Identifier: MIT
// Boundary.tsx - a part that cannot be shown says so in its place; the others stay.
import { Component, type ComponentChildren } from "preact";
import { Empty } from "./Facts";
import { shown } from "./format";

export class Boundary extends Component<{ children: ComponentChildren }, { why: string | null }> {
  state = { why: null };

  componentDidCatch(error: unknown): void {
    this.setState({ why: shown(error instanceof Error ? error.message : String(error), 200) });
  }

  render() {
    if (this.state.why === null) return this.props.children;
    return <Empty>This part cannot be shown; the document has something in it that it does not expect: {this.state.why}</Empty>;
  }
}
