// An ensemble in the page: onnxruntime-web runs digits.onnx, and two canvases show what comes out.

import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";

ort.env.wasm.wasmPaths = new URL("./node_modules/onnxruntime-web/dist/", import.meta.url).href;
ort.env.wasm.numThreads = 1; // more need headers of the server's, which isolate the page

const SIDE = 8, CLASSES = 10, CELL = 30;
const at = (id) => document.getElementById(id);
const session = await ort.InferenceSession.create("digits.onnx");
const cases = await (await fetch("cases.json")).json();

/** The members', the mean's probabilities, and the disagreement in nats, of rows of 64 bytes. */
async function predict(rows) {
  const bytes = Uint8Array.from(rows.flat());
  const images = new ort.Tensor("uint8", bytes, [rows.length, SIDE * SIDE]);
  const results = await session.run({ images });
  return Object.fromEntries(Object.entries(results).map(([name, x]) => [name, [...x.data]]));
}

function drawImage(pixels) {
  const pen = at("pad").getContext("2d");
  pixels.forEach((value, i) => {
    pen.fillStyle = `rgb(${255 - value} ${255 - value} ${255 - value})`;
    pen.fillRect((i % SIDE) * CELL, Math.floor(i / SIDE) * CELL, CELL, CELL);
  });
}

function drawChart(members, mean) {
  const canvas = at("chart"), pen = canvas.getContext("2d");
  const step = canvas.width / CLASSES, bottom = canvas.height - 24, height = bottom - 10;
  pen.clearRect(0, 0, canvas.width, canvas.height);
  pen.font = "14px sans-serif";
  pen.textAlign = "center";
  for (let digit = 0; digit < CLASSES; digit++) {
    const middle = (digit + 0.5) * step;
    pen.fillStyle = "#9dbdd6";
    pen.fillRect(middle - 0.35 * step, bottom - height * mean[digit], 0.7 * step, height * mean[digit]);
    pen.fillStyle = "#c7602a";
    for (let member = 0; member < members.length / CLASSES; member++) {
      const x = middle + (member / (members.length / CLASSES - 1) - 0.5) * 0.5 * step;
      pen.beginPath();
      pen.arc(x, bottom - height * members[member * CLASSES + digit], 2, 0, 2 * Math.PI);
      pen.fill();
    }
    pen.fillStyle = "#222";
    pen.fillText(String(digit), middle, canvas.height - 6);
  }
}

async function show(pixels) {
  const { members, mean, disagreement } = await predict([pixels]);
  const digit = mean.indexOf(Math.max(...mean));
  drawImage(pixels);
  drawChart(members, mean);
  at("words").textContent = `${digit}, with probability ${mean[digit].toFixed(3)}; ` +
    `the networks' disagreement is ${disagreement[0].toFixed(3)} nats`;
}

let pixels = cases.images[0], chosen = 0;
at("next").onclick = () => show((pixels = cases.images[++chosen % cases.images.length]));
at("clear").onclick = () => show((pixels = pixels.map(() => 0)));
at("pad").onpointermove = (event) => {
  if (!event.buttons) return;
  const own = at("pad").getBoundingClientRect();
  const place = (offset, length) => Math.min(SIDE - 1, Math.max(0, Math.floor(SIDE * offset / length)));
  const [column, row] = [place(event.offsetX, own.width), place(event.offsetY, own.height)];
  pixels = pixels.map((v, i) => (i === row * SIDE + column ? 255 : v));
  show(pixels);
};
await show(pixels);
window.ready = { predict, cases };
