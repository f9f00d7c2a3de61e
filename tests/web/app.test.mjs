// SPDX-License-Identifier: MIT
// The pages of `tare serve` in a real browser: getting in and out, and each page for what it shows.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { closeBrowser, downloaded, overflow, readJson, root, serve, shot, violations, withApp } from "./browser.mjs";

let server, token, every;
const SWEEP = readJson("data/sweep.json");
const RULES = join(tmpdir(), `tare-app-${process.pid}.json`);
const TOLD = `${RULES}.told`;
const RUNS = 60;
const STEP = 50;
const idOf = (n) => `01KA3QZ4M6S1V7W8X9Y${String(n).padStart(7, "0")}`;

/** Run number n, a day after the one before, of two cases whose median is 10 ms, and 13 ms from STEP on. */
function made(n) {
  const value = Math.round(1e7 * (n < STEP ? 1 : 1.3) * (1 + 0.001 * ((n * 7) % 5)));
  const cases = SWEEP.cases.slice(0, 2).map((c) => ({
    ...c,
    latency_ns: { p50: { value, lo: value - 1000, hi: value + 1000 } },
    samples_raw: null,
    throughput: null,
  }));
  return {
    ...SWEEP,
    id: idOf(n),
    created: new Date(Date.UTC(2026, 0, 1 + n)).toISOString(),
    subject: { ...SWEEP.subject, name: "stepped" },
    config: { ...SWEEP.config, git_commit: n % 2 ? "abc1230000" : "def4560000" },
    recommendation: null,
    findings: [],
    cases,
  };
}

/** A hundred requests of the service "shop" of so many minutes ago: 90 of about 2 ms, 10 of about 0.3 s, and 4 errors. */
function served(n, minutes) {
  const from = Math.floor((Date.now() - minutes * 60000) / 10000) * 10000;
  const counts = new Array(463).fill(0);
  counts[0] = 90; // bucket 1339: (2^(1339/64), 2^(1340/64)] ns, about 2 ms
  counts[462] = 10; // bucket 1801: about 0.3 s
  const [low, high] = [Math.floor(2 ** (1339.5 / 64)), Math.floor(2 ** (1801.5 / 64))];
  return {
    schema: "tare.requests/1",
    id: idOf(1000 + n),
    service: "shop",
    host: `web-${n % 2}`,
    from_ms: from,
    to_ms: from + 10000,
    lost: 0,
    routes: [
      {
        route: "GET /buy",
        latency_ns: { sum: 90 * low + 10 * high, min: low, max: high, histogram: { scale: 6, offset: 1339, zero: 0, counts } },
        first_byte_ns: null,
        errors: 4,
        cancelled: 1,
        slo: [{ threshold_ns: 200000000, objective: 0.9, within: 90, breached: 10 }],
        worst: [{ id: "<b>slow</b>", at_ms: from, latency_ns: high, failed: null }],
      },
    ],
  };
}

const TRACES = ["whole", "gpu", "memory-history"]; // scopes; what a GPU did; who held memory
const fileOf = {};

/** A trace of the corpus as a file of the run SWEEP. */
async function sendTrace(name) {
  const bytes = readFileSync(join(root, "fuzz", "corpus", "trace", name));
  const sha = (data) => createHash("sha256").update(data).digest();
  const headers = { Authorization: `Bearer ${server.token("ingest")}`, "Content-Type": "application/octet-stream" };
  const piece = await fetch(`${server.url}/api/v1/pieces`, { method: "POST", headers, body: bytes });
  assert.equal(piece.status, 201, await piece.text());
  await server.post({ name: `${name}.tare`, pieces: [sha(bytes).toString("hex")] }, `runs/${SWEEP.id}/uploads`);
  fileOf[name] = sha(sha(bytes)).toString("hex");
}

before(async () => {
  writeFileSync(RULES, JSON.stringify({ schema: "tare.operations/1", alerts: { rules: ["slo.burn>1", "regression>90%"], command: `cat >> '${TOLD}'` } }), { mode: 0o600 });
  server = await serve("app", "--operations", RULES);
  token = server.token("read");
  every = server.token("read,admin");
  await server.post(SWEEP);
  for (let n = 0; n < RUNS; n++) await server.post(made(n));
  for (let n = 0; n < 6; n++) await server.post(served(n, 5 + 6 * n), "requests");
  for (const name of TRACES) await sendTrace(name);
});
after(async () => {
  await server?.stop();
  await closeBrowser();
  for (const path of [RULES, TOLD]) rmSync(path, { force: true });
});

async function logIn(page, secret = token) {
  await page.getByLabel("Token").fill(secret);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForSelector("nav.menu");
}

/** A browser that is logged in, at a view. */
const withView = (hash, use, options = {}) =>
  withApp(
    `${server.url}/#${hash}`,
    async (page, bad) => {
      await logIn(page, options.secret);
      await use(page, bad);
    },
    options,
  );

// ---- in and out ----

test("the login link logs in, once, and leaves no trace in the address", async () => {
  await withApp(server.link, async (page) => {
    await page.waitForSelector("nav.menu");
    assert.equal(page.url(), `${server.url}/`);
    const [cookie] = await page.context().cookies();
    assert.equal(cookie.httpOnly, true);
    assert.equal(cookie.sameSite, "Strict");
    assert.equal(await page.evaluate(() => document.cookie), "");
    await page.reload();
    await page.waitForSelector("nav.menu");
  });
  await withApp(
    server.link,
    async (page, bad) => {
      await page.getByRole("alert").waitFor();
      assert.match(await page.getByRole("alert").innerText(), /was used already, or is too old/);
      assert.deepEqual(await page.context().cookies(), []);
      assert.deepEqual(
        bad.filter((b) => !b.includes("401")),
        [],
      );
    },
    { noisy: true },
  );
});

test("a token logs in, and logging out ends it for good", async () => {
  await withView("page=self", async (page) => {
    await page.getByText("Running for").waitFor();
    const [cookie] = await page.context().cookies();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByText("You are logged out").waitFor();
    assert.deepEqual(await page.context().cookies(), []);
    const again = await fetch(`${server.url}/api/v1/self`, { headers: { Cookie: `${cookie.name}=${cookie.value}` } });
    assert.equal(again.status, 401);
  });
});

test("a wrong token is told, and nothing is shown", async () => {
  await withApp(
    server.url,
    async (page) => {
      await page.getByLabel("Token").fill(`${token.slice(0, -1)}x`);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.getByRole("alert").waitFor();
      assert.match(await page.getByRole("alert").innerText(), /no such token/);
      assert.equal(await page.locator("nav.menu").count(), 0);
    },
    { noisy: true },
  );
});

test("a session that ends asks for a login, and goes on where it was", async () => {
  const short = await serve("short", "--session-max", "2s");
  try {
    const secret = short.token("read");
    await withApp(
      `${short.url}/#page=self`,
      async (page) => {
        await logIn(page, secret);
        await page.getByText("The session has ended").waitFor(); // the page asks by itself
        assert.match(page.url(), /#page=self$/);
        await logIn(page, secret);
        await page.waitForSelector("nav.menu");
      },
      { noisy: true },
    );
  } finally {
    await short.stop();
  }
});

// ---- runs ----

test("what got worse is on the first page, and leads to the two runs and to the trend", async () => {
  await withView("", async (page) => {
    const rows = page.getByRole("region", { name: "What got worse in latency.p50" }).locator("tbody tr");
    await rows.first().waitFor();
    assert.equal(await rows.count(), 2);
    assert.match(await rows.first().innerText(), /stepped.*\+30\s%/s);
    await rows.first().getByRole("link").click();
    await page.waitForSelector("h2:text('Side by side')");
    assert.ok(page.url().endsWith(`#page=compare&runs=${idOf(STEP - 1)}%2C${idOf(STEP)}`));
    await page.goBack();
    await page.getByRole("link", { name: "Trend of stepped" }).click();
    await page.waitForSelector("h2:text('Changes')");
  });
});

test("runs are found by commit and subject, and there is an older page", async () => {
  await withView("page=runs&subject=stepped", async (page) => {
    const rows = page.getByRole("region", { name: "Runs" }).locator("tbody tr");
    await rows.first().waitFor();
    assert.equal(await rows.count(), 50);
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 10);
    assert.match(page.url(), /before=/);
    await page.getByLabel("Commit").fill("abc");
    await page.getByLabel("Commit").press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 30);
    assert.doesNotMatch(page.url(), /before=/); // another list begins at its beginning
    const csv = await downloaded(page, () => page.getByRole("button", { name: "CSV of these 30" }).click());
    assert.equal(csv.bytes.toString().trim().split("\r\n").length, 31);
    await page.getByLabel("Subject").fill("nobody");
    await page.getByLabel("Subject").press("Enter");
    await page.getByText("No run is like this.").waitFor();
  });
});

test("two to eight runs are chosen and compared, and the address shows the same again", async () => {
  await withView("page=runs&subject=stepped", async (page) => {
    for (const n of [STEP - 1, STEP, STEP + 1]) await page.getByLabel(`Compare ${idOf(n)}`).click();
    await page.getByRole("link", { name: "Compare 3 runs" }).click();
    await page.waitForSelector("h2:text('Side by side')");
    const table = page.getByRole("region", { name: "Runs side by side" });
    const row = table.locator("tbody tr", { hasText: "latency.p50" }).first();
    assert.match(await row.innerText(), /10.*ms \(.* to .*\).*13.*ms \(.* to .*\)/s); // values with their intervals
    await page.getByText("What else differs").waitFor();
    assert.match(await page.locator("main").innerText(), /tare compare --history history\.db/);
    await page.locator(".pick select").selectOption(idOf(STEP + 1));
    const before = await page.locator("main").innerText();
    await page.reload();
    await page.waitForSelector("h2:text('Side by side')");
    assert.equal(await page.locator("main").innerText(), before);
  });
});

test("a ninth run cannot be chosen", async () => {
  const eight = Array.from({ length: 8 }, (_, i) => idOf(RUNS - 1 - i)).join(",");
  await withView(`page=runs&subject=stepped&pick=${eight}`, async (page) => {
    await page.getByRole("link", { name: "Compare 8 runs" }).waitFor();
    assert.equal(await page.getByLabel(`Compare ${idOf(RUNS - 9)}`).isDisabled(), true);
    await page.getByLabel(`Compare ${idOf(RUNS - 1)}`).click();
    await page.getByRole("link", { name: "Compare 7 runs" }).waitFor();
    assert.equal(await page.getByLabel(`Compare ${idOf(RUNS - 9)}`).isDisabled(), false);
  });
});

test("one run is shown by the sections of the report page", async () => {
  await withView(`page=run&id=${SWEEP.id}`, async (page) => {
    await page.getByText("Recommended for throughput").waitFor();
    assert.match(await page.locator("main").innerText(), /46 of 519 runs/);
    assert.ok((await page.locator("figure").count()) > 3);
  });
});

test("a run leads to its traces, and each is shown as the report page does", async () => {
  await withView(`page=run&id=${SWEEP.id}`, async (page) => {
    await page.getByRole("region", { name: "Traces of this run" }).getByRole("link", { name: "whole.tare" }).click();
    await page.waitForSelector("main h1:text('Trace')");
    await page.locator("#flame canvas").first().waitFor();
    assert.match(page.url(), new RegExp(`file=${fileOf.whole}`));
    assert.match(await page.locator("main").innerText(), new RegExp(`tare report --server ${server.url} --trace @${SWEEP.id}`));
    await page.locator(".pick select").first().selectOption({ label: "gpu.tare" });
    await page.locator("#bars canvas").first().waitFor();
    await page.reload();
    await page.locator("#bars canvas").first().waitFor(); // the address shows the same again
    await page.keyboard.press("j");
    await page.waitForFunction(() => /[#&]at=/.test(location.hash));
    await page.getByRole("link", { name: "Its run" }).click();
    await page.waitForSelector("main h1:text('Run')");
    const [file] = await Promise.all([
      downloaded(page, async () => {
        await page.getByRole("link", { name: "memory-history.tare" }).click();
        await page.getByRole("link", { name: "File", exact: true }).click();
      }),
    ]);
    assert.deepEqual(file.bytes, readFileSync(join(root, "fuzz", "corpus", "trace", "memory-history")));
  });
});

test("traces that are not there are said to be so", async () => {
  for (const [hash, says] of [
    ["page=trace", /names no run/],
    [`page=trace&run=${idOf(1)}`, /has no trace/],
    [`page=trace&run=${SWEEP.id}&file=${"0".repeat(64)}`, /no such file/],
  ])
    await withView(hash, async (page) => {
      await page.waitForFunction(() => document.querySelector("main .empty:not([role])"));
      assert.match(await page.locator("main").innerText(), says);
    });
});

test("runs that are not there are said to be so", async () => {
  for (const [hash, says] of [
    [`page=run&id=${idOf(9999)}`, /no such run/],
    [`page=compare&runs=${idOf(1)},${idOf(9999)}`, /no such run: new/],
    ["page=trend&subject=nobody", /no such subject/],
  ])
    await withView(
      hash,
      async (page) => {
        await page.getByRole("alert").waitFor();
        assert.match(await page.getByRole("alert").innerText(), says);
      },
      { noisy: true },
    );
});

test("a page of another name is none", async () => {
  await withView("page=constructor", async (page) => {
    await page.getByText("There is no page of this name").waitFor();
  });
});

test("hosts that send metrics are on the first page", async () => {
  for (const host of ["gpu7", "gpu8"]) {
    const reply = await fetch(`${server.url}/api/v1/metrics`, {
      method: "POST",
      headers: { Authorization: `Bearer ${server.token("ingest")}`, "Content-Type": "application/json" },
      body: JSON.stringify({ batch: `of-${host}`, host, at: Date.now(), samples: [{ name: "load.1m", value: 1 }] }),
    });
    assert.equal(reply.status, 201, await reply.text());
  }
  await withView("", async (page) => {
    const rows = page.getByRole("region", { name: "Hosts that send metrics" }).locator("tbody tr");
    await rows.first().waitFor();
    assert.equal(await rows.count(), 2);
  });
});

test("where the server cannot be reached the old answer stays, and says so", async () => {
  await withView(
    "page=self",
    async (page) => {
      await page.getByText("Running for").waitFor();
      await page.context().setOffline(true);
      await page.getByRole("alert").waitFor(); // the page asks again by itself
      assert.match(await page.getByRole("alert").innerText(), /cannot be reached; shown is what was there at \d\d:\d\d:\d\d UTC/);
      assert.equal(await page.getByText("Running for").isVisible(), true);
      await page.context().setOffline(false);
      await page.getByRole("button", { name: "Try again" }).click();
      await page.waitForFunction(() => !document.querySelector("[role=alert]"));
    },
    { noisy: true },
  );
});

test("an empty server says what to do", async () => {
  const empty = await serve("empty");
  try {
    const secret = empty.token("read");
    for (const [hash, says] of [
      ["", /No run yet\. tare bench writes one/],
      ["page=runs", /No run yet/],
      ["page=trend", /No run yet/],
      ["page=compare", /Choose two runs or more/],
      ["page=run", /names no run/],
    ])
      await withApp(`${empty.url}/#${hash}`, async (page) => {
        await logIn(page, secret);
        await page.waitForFunction(() => document.querySelector("main h1") && !document.querySelector("main").innerText.includes("Loading…"));
        assert.match(await page.locator("main").innerText(), says);
      });
  } finally {
    await empty.stop();
  }
});

// ---- trends ----

test("the trend has its step, in the plot's words, in the table and in the CSV", async () => {
  await withView("page=trend&subject=stepped", async (page) => {
    const figure = page.locator("figure").first();
    await figure.waitFor();
    assert.match(await figure.innerText(), /The level changed once, last \+30\s%/);
    const changes = page.getByRole("region", { name: "Changes of the level" }).locator("tbody tr");
    assert.equal(await changes.count(), 2);
    assert.match(await changes.first().innerText(), new RegExp(`worse.*${idOf(STEP - 1)}.*${idOf(STEP)}`, "s"));
    await figure.getByRole("button", { name: /^Table of/ }).click();
    assert.equal(await figure.locator("tbody tr").count(), RUNS);
    const csv = await downloaded(page, () => figure.getByRole("button", { name: /^Save CSV/ }).click());
    assert.equal(csv.bytes.toString().trim().split("\r\n").length, RUNS + 1);
    await page.getByLabel("Newest").selectOption("30");
    await page.waitForFunction(() => document.querySelectorAll("figure tbody tr").length === 30);
    assert.match(page.url(), /last=30/);
  });
});

test("without a subject there are subjects to choose from", async () => {
  await withView("page=trend", async (page) => {
    await page.getByRole("link", { name: "stepped" }).click();
    await page.waitForSelector("figure");
  });
});

test("a new baseline is accepted, which ends what got worse, and is taken back", async () => {
  await withView(
    "page=trend&subject=stepped",
    async (page) => {
      await page.getByText("No run is accepted as the baseline").waitFor();
      const button = page.getByRole("button", { name: "Accept new baseline" });
      await button.click();
      await page.getByRole("button", { name: "Surely?" }).click();
      await page.locator("#h-baseline + p", { hasText: idOf(RUNS - 1) }).waitFor();
      await page.locator("#summary-history-0", { hasText: "no change of the level since" }).waitFor();
      await shot(page, "app-baseline");
      await page.getByRole("link", { name: "Overview" }).click();
      await page.getByText("Nothing got worse than its baseline").waitFor();
      await page.goBack();
      await page.getByRole("button", { name: "Take it back" }).click();
      await page.getByText("No run is accepted as the baseline").waitFor();
    },
    { secret: every },
  );
  await withView("page=trend&subject=stepped", async (page) => {
    await page.getByText("No run is accepted as the baseline").waitFor();
    assert.equal(await page.getByRole("button", { name: "Accept new baseline" }).count(), 0); // who only reads
  });
  await withView(`page=run&id=${idOf(3)}`, async (page) => {
    await page.getByRole("button", { name: "Accept as baseline" }).click();
    await page.getByRole("button", { name: "Surely?" }).click();
    await page.getByText("The baseline of its subject").waitFor();
    const gone = await page.evaluate((id) => fetch(`/api/v1/baselines/${id}`, { method: "DELETE", headers: { "X-Tare": "page" } }).then((r) => r.status), idOf(3));
    assert.equal(gone, 204);
  }, { secret: every });
});

// ---- alerts ----

test("alerts: what fires is told with its value and limit, silence begins and ends, a test is sent", async () => {
  await withView(
    "page=alerts",
    async (page) => {
      const row = page.getByRole("region", { name: "Alerts" }).locator("tbody tr", { hasText: "shop: 90% within 200 ms" });
      await row.getByText("firing").waitFor(); // 14 of 104 are bad where 10 of 100 may be
      assert.match(await row.innerText(), /slo\.burn>1\s[^]*1\.346\s+1\s/);
      const others = page.getByRole("region", { name: "Alerts" }).locator("tbody tr", { hasText: /regression>90%[^]*stepped/ }); // by 30 %
      assert.match(await others.first().innerText(), /^good\s/);
      await page.getByLabel("Rule").selectOption("slo.burn>1");
      await page.getByLabel("Why").fill("<b>known</b>");
      await page.getByRole("button", { name: "Silence", exact: true }).click();
      const silence = page.getByRole("region", { name: "Silences" }).locator("tbody tr", { hasText: "<b>known</b>" });
      await silence.getByRole("button").click();
      await page.getByText("Every change is told.").waitFor();
      await page.getByRole("button", { name: "Send a test" }).click();
      await page.getByText("The test is on its way.").waitFor();
      const told = () => existsSync(TOLD) && readFileSync(TOLD, "utf8").includes('"state":"test"');
      for (const end = Date.now() + 30_000; !told() && Date.now() < end; ) await new Promise((done) => setTimeout(done, 50));
      assert.ok(told());
    },
    { secret: every },
  );
  await withView("page=alerts", async (page) => {
    await page.getByText("Every change is told.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Send a test" }).count(), 0); // who reads does not ask for silence
  });
});

// ---- administration ----

test("an administrator makes a token, which works, and revokes it, which ends it and its sessions", async () => {
  const secret = server.token("admin,read");
  await withApp(`${server.url}/#page=admin`, async (page) => {
    await logIn(page, secret);
    await page.getByLabel("Name").fill("of the test");
    await page.getByRole("button", { name: "Make a token" }).click();
    const made = await page.locator(".made code").innerText();
    assert.match(made, /^tare_read_[0-9a-f]{12}_[0-9a-f]{64}$/);
    const works = (status) => fetch(`${server.url}/api/v1/self`, { headers: { Authorization: `Bearer ${made}` } }).then((r) => r.status === status);
    assert.ok(await works(200));
    const row = page.getByRole("region", { name: "Tokens" }).locator("tbody tr", { hasText: "of the test" });
    await row.getByRole("button").click();
    assert.equal(await row.getByRole("button").innerText(), "Surely?"); // the first click does nothing yet
    assert.ok(await works(200));
    await row.getByRole("button").click();
    await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((r) => /of the test[^]*revoked/.test(r.innerText)));
    for (const end = Date.now() + 30_000; !(await works(401)) && Date.now() < end; ) await new Promise((done) => setTimeout(done, 50));
    assert.ok(await works(401));
    const changes = page.getByRole("region", { name: /newest .* changes/ });
    await changes.getByText(made.split("_")[2]).first().waitFor();
    assert.doesNotMatch(await page.locator("main").innerText(), new RegExp(secret.split("_")[3]));
  });
});

test("who may only read has no page for administrators", async () => {
  await withView("page=admin", async (page) => {
    await page.getByText("There is no page of this name").waitFor();
    assert.equal(await page.getByRole("link", { name: "Admin" }).count(), 0);
  });
});

// ---- other sites ----

test("a page of another origin can change nothing and read nothing", async () => {
  const other = createServer((_, reply) => reply.setHeader("Content-Type", "text/html").end("<!doctype html><title>x</title><main></main>"));
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  try {
    await withApp(
      server.url,
      async (page) => {
        await logIn(page);
        await page.goto(`http://127.0.0.1:${other.address().port}/`); // the same site for cookies, another origin
        const tried = await page.evaluate(async (url) => {
          const asked = (init) => fetch(`${url}/api/v1/session`, { credentials: "include", ...init }).then((r) => r.type, () => "failed");
          return [
            await asked({}),
            await asked({ method: "DELETE" }),
            await asked({ method: "DELETE", headers: { "X-Tare": "page" } }),
            await asked({ method: "POST", mode: "no-cors", body: "{}" }),
          ];
        }, server.url);
        assert.deepEqual(tried, ["failed", "failed", "failed", "opaque"]);
        await page.goto(server.url);
        await page.waitForSelector("nav.menu"); // still logged in
        const framed = await page.goto(`${server.url}/`);
        assert.match(framed.headers()["content-security-policy"], /frame-ancestors 'none'/);
      },
      { noisy: true },
    );
  } finally {
    other.close();
  }
});

// ---- requests ----

test("a service leads to its promises, percentiles and heat map", async () => {
  await withView("page=requests", async (page) => {
    await page.getByRole("link", { name: "shop" }).click();
    await page.waitForSelector("main h2:text('Promises')");
    const promise = await page.locator("table", { hasText: "objective" }).innerText();
    assert.match(promise, /200.ms\s+90.%\s+86.5\d*.%\s+540\s+60\s+24\s+1.35/); // 540 of 624; 84 of 624 against a tenth
    const routes = await page.locator("table", { hasText: "p99.9" }).innerText();
    assert.match(routes, /GET \/buy\s+624\s+24\s+6\s+[12].\d+.ms/);
    assert.match(routes, /unknown/); // p99.9 of 600
    assert.match(await page.locator("#summary-heat").innerText(), /^600 requests;/);
    await page.locator("#fig-heat .drawing").focus();
    await page.keyboard.press("End");
    assert.match(await page.locator("#fig-heat .answer").innerText(), /UTC, 268.ms to 319.ms: 10 requests$/);
    assert.match(await page.locator("main").innerText(), /<b>slow<\/b>/);
    await page.getByLabel("Table of Requests by time and latency").click();
    assert.equal(await page.locator("#fig-heat tbody tr").count(), 12);
  });
});

// ---- every page ----

const PAGES = ["overview", "runs", `run&id=${SWEEP.id}`, ...TRACES.map((name) => `trace&run=${SWEEP.id}&trace=${name}`), `compare&runs=${idOf(1)},${idOf(55)}`, "trend&subject=stepped", "requests", "requests&service=shop", "alerts", "admin", "self"];

/** The word of a page for names of tests and pictures. */
const wordOf = (id) => id.split("&")[0] + (/&trace=(.*)$/.exec(id)?.[1] ?? "");

for (const id of PAGES)
  test(`${wordOf(id)}: readable, narrow, dark, by axe's rules`, async () => {
    for (const theme of ["light", "dark"])
      await withView(
        `page=${id.replace(/&trace=(.*)$/, (_, name) => `&file=${fileOf[name]}`)}`,
        async (page) => {
          await page.waitForSelector("main h1");
          await page.waitForFunction(() => !document.querySelector("main")?.innerText.includes("Loading…"));
          await shot(page, `app-${wordOf(id)}-${theme}`);
          assert.deepEqual(await violations(page), []);
          await page.setViewportSize({ width: 375, height: 800 });
          await shot(page, `app-${wordOf(id)}-${theme}-narrow`);
          assert.ok((await overflow(page)) <= 0, "nothing sticks out at 375 px");
        },
        { theme, secret: every },
      );
  });

test("by keyboard: pages, help, and the way to the content", async () => {
  await withView("", async (page) => {
    await page.keyboard.press("2");
    await page.waitForSelector("main h1:text('Runs')");
    assert.match(page.url(), /#page=runs$/);
    await page.goBack();
    await page.waitForSelector("main h1:text('Overview')");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.keyboard.press("d");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  });
});

// ---- hosts ----

test("a host is shown as it works: what was kept, then what comes, and the address shows the same again", async () => {
  const ingest = server.token("ingest");
  let number = 0;
  const push = async (...samples) => {
    const body = JSON.stringify({ batch: `b${number++}`, host: "gpu7", about: { os: "Debian" }, samples });
    const headers = { Authorization: `Bearer ${ingest}`, "Content-Type": "application/json" };
    const got = await fetch(`${server.url}/api/v1/metrics`, { method: "POST", headers, body });
    assert.equal(got.status, 201, await got.text());
  };
  const at = Date.now();
  await push({ name: "load.1m", at: at - 60_000, value: 2 }, { name: "load.1m", at: at - 8000, value: 3 });
  await push({ name: "gpu.power", label: "gpu0", at: at - 8000, value: 250 }, { name: "app.queue", at: at - 8000, value: 1 });
  await withView("page=hosts", async (page) => {
    await page.getByRole("link", { name: "gpu7" }).click();
    const newest = (text) => page.locator("#summary-live-load-1m", { hasText: text });
    await newest("Newest: 3").waitFor();
    await page.getByText("Live: drawn anew").waitFor();
    assert.equal(await page.locator(".plot").count(), 2); // what is looked at first
    await push({ name: "load.1m", at: Date.now(), value: 7 });
    await newest("Newest: 7").waitFor(); // nobody asked for it
    await page.locator(".pick select").first().selectOption("app.queue");
    await page.locator("#summary-live-app-queue").waitFor();
    assert.match(page.url(), /metric=app\.queue/);
    assert.deepEqual(await violations(page), []);
    await page.reload();
    await page.locator("#summary-live-app-queue").waitFor();
    await page.setViewportSize({ width: 375, height: 700 });
    assert.ok((await overflow(page)) <= 0);
  });
});
