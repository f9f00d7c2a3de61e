// SPDX-License-Identifier: MIT
// The pages of `tare serve` in a real browser: getting in and out, and each page for what it shows.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { closeBrowser, overflow, readJson, serve, shot, violations, withApp } from "./browser.mjs";

let server, token;

before(async () => {
  server = await serve("app");
  token = server.token("read");
  await server.post(readJson("data/sweep.json"));
});
after(async () => {
  await server?.stop();
  await closeBrowser();
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
      await logIn(page);
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

// ---- every page ----

const PAGES = ["overview", "runs", "self"];

for (const id of PAGES)
  test(`${id}: readable, narrow, dark, by axe's rules`, async () => {
    for (const theme of ["light", "dark"])
      await withView(
        `page=${id}`,
        async (page) => {
          await page.waitForSelector("main h1");
          await page.waitForFunction(() => !document.querySelector("[role=status]"));
          await shot(page, `app-${id}-${theme}`);
          assert.deepEqual(await violations(page), []);
          await page.setViewportSize({ width: 375, height: 800 });
          assert.ok((await overflow(page)) <= 0, "nothing sticks out at 375 px");
        },
        { theme },
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
