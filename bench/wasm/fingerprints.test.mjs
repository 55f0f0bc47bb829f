// A browser's machine comes to the fingerprint of the native program: node --test fingerprints.test.mjs MODULE PROGRAM
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const { HOPLINE_WASM: module, HOPLINE: program } = process.env;
const scenarios = ["chain", "chain-olsr", "cross", "hidden", "wired", "web", "gateway"].map(
  (name) => new URL(`../../scenarios/${name}/scenario.toml`, import.meta.url).pathname,
);

const { instance } = await WebAssembly.instantiate(readFileSync(module), {});
const { push, run, answer } = instance.exports;

function inWasm(text, number) {
  for (const byte of new TextEncoder().encode(text)) push(byte);
  const length = run(BigInt(number));
  return new TextDecoder().decode(Uint8Array.from({ length }, (_, at) => answer(at)));
}

function natively(scenario, number) {
  const said = execFileSync(program, ["run", scenario, "--run", String(number), "--json"], { encoding: "utf8" });
  return JSON.parse(said).fingerprint;
}

for (const scenario of scenarios) {
  for (const number of [1, 2]) {
    test(`run ${number} of ${scenario.split("/").at(-2)} is the same run`, () => {
      assert.equal(inWasm(readFileSync(scenario, "utf8"), number), natively(scenario, number));
    });
  }
}

test("what is wrong is said with its place", () => {
  assert.match(inWasm("duration_s = 10\ndurration = 3\n", 1), /^scenario\.toml:2:1: unknown key `durration`/);
});
