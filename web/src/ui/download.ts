// SPDX-License-Identifier: MIT
// download.ts - hand a figure to the reader as a file, without any request: text and canvases become blobs.

export function saveBlob(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const saveText = (name: string, type: string, text: string): void => saveBlob(name, new Blob([text], { type }));

/** At once, not in a callback: browsers count downloads that no click asks for, and stop them. */
export function saveCanvas(name: string, canvas: HTMLCanvasElement): void {
  const text = atob(canvas.toDataURL("image/png").split(",")[1] ?? "");
  const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
  saveBlob(name, new Blob([bytes], { type: "image/png" }));
}

/** Escaped for text and for attribute values of SVG. */
export function xml(text: string): string {
  const bare = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
  return bare.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

export const deviceRatio = (): number => window.devicePixelRatio || 1;

/** A canvas as large as the given one, on paper, with a title above: what a PNG of a figure is. */
export function framed(canvas: HTMLCanvasElement, title: string, ink: string, paper: string): HTMLCanvasElement {
  const scale = canvas.clientWidth ? canvas.width / canvas.clientWidth : deviceRatio(); /* outside the page it has no width there */
  const head = Math.round(28 * scale);
  const out = document.createElement("canvas");
  out.width = canvas.width;
  out.height = canvas.height + head;
  const pen = out.getContext("2d")!;
  pen.fillStyle = paper;
  pen.fillRect(0, 0, out.width, out.height);
  pen.fillStyle = ink;
  pen.font = `600 ${Math.round(14 * scale)}px system-ui, sans-serif`;
  pen.fillText(title, Math.round(8 * scale), Math.round(19 * scale));
  pen.drawImage(canvas, 0, head);
  return out;
}
