// Opens the page in a headless Chromium and compares its numbers: node check.mjs PICTURE
//
// Fails where a number differs from Python's, a request leaves the folder or a script fails.

import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { dirname, extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";

const folder = dirname(fileURLToPath(import.meta.url));
const KINDS = { ".html": "text/html", ".mjs": "text/javascript", ".json": "application/json",
  ".wasm": "application/wasm" };
// Sums of 128 float32 products, in another order than Python's; probabilities are at most 1.
const TOLERANCE = 1e-5;
const faults = [];

const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
  try {
    const body = readFileSync(join(folder, normalize(path === "/" ? "/index.html" : path)));
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
try {
  const page = await browser.newPage();
  await page.setViewport({ width: 800, height: 640 });
  page.on("pageerror", (e) => faults.push(e.message));
  page.on("request", (r) => r.url().startsWith(home) || faults.push(`asks for ${r.url()}`));
  await page.goto(`${home}/index.html`);
  await page.waitForFunction("window.ready", { timeout: 120000 });
  const { expected, got, milliseconds } = await page.evaluate(async () => {
    const { predict, cases } = window.ready;
    const got = await predict(cases.images);
    const times = [];
    for (let i = 0; i < 200; i++) {
      const start = performance.now();
      await predict([cases.images[i % cases.images.length]]);
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    return { got, expected: cases.expected, milliseconds: [times[50], times[100], times[150]] };
  });
  for (const [name, values] of Object.entries(expected)) {
    const flat = values.flat(Infinity);
    const worst = Math.max(...flat.map((v, i) => Math.abs(v - got[name][i])));
    console.log(`${name}: ${flat.length} numbers, at most ${worst.toExponential(1)} from Python's`);
    if (flat.length !== got[name].length || !(worst < TOLERANCE)) faults.push(`${name} differs`);
  }
  const [low, middle, high] = milliseconds.map((t) => t.toFixed(2));
  console.log(`an image takes ${middle} ms (quartiles ${low} and ${high})`);
  await page.click("#next");
  await page.screenshot({ path: process.argv[2] ?? join(folder, "page.png") });
} finally {
  await browser.close();
  server.close();
}
for (const fault of faults) console.log(fault);
process.exit(faults.length ? 1 : 0);
