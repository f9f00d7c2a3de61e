// SPDX-License-Identifier: MIT
// search.js - sections that hold all words that were typed: those with them in a heading first. The index is search-index.js.
"use strict";
function tareFind(index, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const score = ([, page, heading, text]) => {
    const [p, h, t] = [page, heading, text].map((x) => x.toLowerCase());
    let sum = 0;
    for (const w of words) {
      const got = (h.includes(w) ? 8 : 0) + (p.includes(w) ? 4 : 0) + (t.includes(w) ? 1 : 0);
      if (!got) return 0;
      sum += got;
    }
    return sum;
  };
  return index.map((row) => [score(row), row]).filter(([s]) => s > 0).sort((a, b) => b[0] - a[0]).slice(0, 20).map(([, row]) => row);
}
if (typeof document !== "undefined") {
  const box = document.getElementById("search"), list = document.getElementById("found");
  box.addEventListener("input", () => {
    list.replaceChildren(...tareFind(tareIndex, box.value).map(([place, page, heading]) => {
      const a = document.createElement("a"), item = document.createElement("li");
      a.href = document.body.dataset.up + place;
      a.textContent = heading && heading !== page ? page + ": " + heading : page;
      item.append(a);
      return item;
    }));
  });
} else module.exports = tareFind;
