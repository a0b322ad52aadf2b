// Looks at the built site in a headless Chromium, at two widths: node look.mjs SITE PICTURES
//
// Fails where a page is wider than the screen, a request leaves the site, a script fails or the
// search does not find. The pictures are for people to look at. npm's packages bring the browser.

import { createServer } from "node:http";
import { mkdirSync, readFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";

import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const [site, pictures] = process.argv.slice(2);
const PAGES = ["index", "start", "tutorials/ensembles", "tutorials/from-jax", "howto/saving",
  "gallery", "glossary", "performance", "reference/index", "reference/stretto.numpy",
  "reference/stretto.optim", "reference/stretto.ensemble/fitted"];
const SEARCHES = { "early stopping": "early-stopping", mutual_information: "mutual_information" };
const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css",
  ".png": "image/png", ".svg": "image/svg+xml", ".json": "application/json",
  ".woff2": "font/woff2" };
const faults = [];

const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  try {
    const body = readFileSync(join(site, normalize(path)));
    response.writeHead(200, { "content-type": KINDS[extname(path)] ?? "application/octet-stream" });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const home = `http://127.0.0.1:${server.address().port}`;

const browser = await puppeteer.launch({
  args: [...chromium.args, "--no-sandbox"],
  executablePath: await chromium.executablePath(),
  headless: "shell",
});
mkdirSync(pictures, { recursive: true });
for (const width of [360, 1280]) {
  const page = await browser.newPage();
  await page.setViewport({ width, height: width < 500 ? 740 : 900 });
  let at = "";
  page.on("request", (r) => {
    const inside = r.url().startsWith(home) || r.url().startsWith("data:");
    if (!inside) faults.push(`${at}: asks for ${r.url()}`);
  });
  page.on("response", (r) => {
    const missing = r.status() >= 400 && !r.url().endsWith("favicon.ico");
    if (missing) faults.push(`${at}: ${r.status()} for ${r.url()}`);
  });
  page.on("pageerror", (e) => faults.push(`${at}: ${e.message}`));
  for (const name of PAGES) {
    at = `${name} at ${width}`;
    await page.goto(`${home}/${name}.html`, { waitUntil: "networkidle0" });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) faults.push(`${at}: ${wide} pixels wide`);
    await page.screenshot({ path: join(pictures, `${name.replaceAll("/", "-")}-${width}.png`) });
  }
  for (const [words, expected] of Object.entries(SEARCHES)) {
    at = `search for ${words} at ${width}`;
    const query = `q=${encodeURIComponent(words)}`;
    await page.goto(`${home}/search.html?${query}`, { waitUntil: "networkidle0" });
    const hit = `#search-results a[href*="${expected}"]`;
    const found = await page.waitForSelector(hit, { timeout: 60000 }).catch(() => null);
    if (!found) faults.push(`${at}: no result has ${expected}`);
    await page.screenshot({ path: join(pictures, `search-${expected}-${width}.png`) });
  }
  await page.close();
}
await browser.close();
server.close();
for (const fault of faults) console.log(fault);
console.log(faults.length ? `${faults.length} faults` : `no fault; pictures in ${pictures}`);
process.exit(faults.length ? 1 : 0);
