// Calls every operation of the client that @hey-api/openapi-ts has generated beside this file, and says what came back.
import { readFileSync } from "node:fs";
import { createClient } from "./generated/client";
import * as desk from "./generated";

async function main(address: string, key: string, rowText: string): Promise<Record<string, unknown>> {
  const client = createClient({ baseUrl: address, auth: key });
  const row = JSON.parse(rowText) as desk.Row;
  const asked: desk.ExplainRequest = {
    row,
    query: { target: "approve", distance: { norm: "l1", weights: { AgeGroup: 2 } }, constraints: ["AgeGroup is fixed", { kind: "fixed", feature: "isMale" }] },
    language: "de",
  };
  const told: Record<string, unknown> = {};
  const explained = await desk.explain({ client, body: asked });
  told["explain"] = [explained.response.status, explained.data?.answer.status, explained.data?.answer.changes.map((one) => one.feature)];
  const { stream } = await desk.explainStream({ client, body: asked, sseMaxRetryAttempts: 1 });
  for await (const event of stream) {
    told["explain_stream"] = [200, (event as unknown as desk.ExplainResponse).answer.status];
    break;
  }
  const lines = new Blob([`${JSON.stringify({ row })}\n{}\n`]);
  const batch = await desk.explainBatch({ client, body: lines, parseAs: "text" });
  told["explain_batch"] = [batch.response.status, String(batch.data).trim().split("\n").map((line) => JSON.parse(line).status)];
  const diverse = await desk.diverse({ client, body: { row, diversity: { count: 2 } } });
  told["diverse"] = [diverse.response.status, diverse.data?.answers.length];
  const predicted = await desk.predict({ client, body: { row } });
  told["predict"] = [predicted.response.status, predicted.data?.decision];
  const rule = await desk.rule({ client, body: { text: "AgeGroup is fixed" } });
  told["rule"] = [rule.response.status, rule.data?.words];
  const wrong = await desk.rule({ client, body: { text: "AgeGroup gos" } });
  told["error"] = [wrong.response.status, wrong.error?.where];
  const certified = await desk.certify({ client, body: { row }, parseAs: "blob" });
  told["certify"] = [certified.response.status];
  const checked = await desk.check({ client, body: certified.data as unknown as Blob });
  told["check"] = [checked.response.status, checked.data?.verdict];
  const recourse = await desk.recourse({ client, body: { row } });
  told["recourse"] = [recourse.response.status, recourse.error?.error];
  told["report"] = [(await desk.report({ client, body: { row } })).response.status];
  told["notice"] = [(await desk.notice({ client, body: { row, form: "gdpr" } })).response.status];
  const why = await desk.why({ client, body: { row } });
  told["why"] = [why.response.status, typeof why.data?.sentence];
  told["v1_models"] = [200, (await desk.v1Models({ client })).data?.models.map((one) => one.name)];
  told["v1_schema"] = [200, (await desk.v1Schema({ client, query: { model: "credit" } })).data?.model];
  told["v1_json_schema"] = [(await desk.v1JsonSchema({ client })).response.status];
  for (const [name, call] of Object.entries({ livez: desk.livez, healthz: desk.healthz, readyz: desk.readyz }))
    told[name] = [200, (await call({ client })).data?.status];
  told["metrics"] = [(await desk.metrics({ client })).response.status];
  told["openapi_json"] = [(await desk.openapiJson({ client })).response.status];
  return told;
}

const [address, key, row] = readFileSync(0, "utf8").split("\n") as [string, string, string];
main(address, key, row).then((told) => console.log(JSON.stringify(told)));
