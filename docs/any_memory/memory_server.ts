// A memory behind HTTP. It finds the chunks that share the most words with the question.
// It uses no syntax that JavaScript lacks: Node 22.18 runs it as it is, Node 20 as an .mjs file.
import { createServer } from "node:http";

/** Chunks by their ids, by namespace: one for each case of a run. */
const memories = new Map();

const words = (text = "") => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));

const operate = (operation = "", body = JSON.parse("{}")) => {
  if (operation === "reset") return memories.set(body.namespace, new Map()), {};

  const chunks = memories.get(body.namespace);
  if (!chunks) throw new Error("unknown namespace");
  if (operation === "ingest") {
    // By id: after a broken connection, a request is repeated.
    for (const chunk of body.chunks) chunks.set(chunk.id, chunk);
    return { usage: [] };
  }
  if (operation === "ready") return { ready: true };
  if (operation !== "search") throw new Error("unknown operation");

  const asked = words(body.query);
  const results = [...chunks.values()].map(({ text = "", content = "", turn_ids = [], time = null }) => {
    const shared = [...words(content)].filter((word) => asked.has(word));
    return { text, turn_ids, time, score: shared.length };
  });
  results.sort((a = { score: 0 }, b = { score: 0 }) => b.score - a.score);
  return { results: results.slice(0, body.top_k), usage: [] };
};

const server = createServer(async (request, response) => {
  let [status, reply, sent] = [200, {}, ""];
  request.setEncoding("utf8");
  for await (const part of request) sent += part;
  try {
    reply = operate(request.url?.slice(1), JSON.parse(sent));
  } catch (error) {
    [status, reply] = [404, { error: String(error) }];
  }
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(reply));
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${Object(server.address()).port}`);
});
