import assert from "node:assert/strict";
import { test } from "node:test";
import { page, registerStatusPage } from "../dist/status-page.js";
import { away, fakeMemory, statusOf } from "./fake-memory.js";

function world(answers = {}) {
  const memory = fakeMemory({ status: ({ agentId }) => statusOf(agentId), ...answers });
  const host = { routes: [], tabs: [] };
  const api = {
    registerHttpRoute: (route) => void host.routes.push(route),
    session: { controls: { registerControlUiDescriptor: (tab) => void host.tabs.push(tab) } },
  };
  registerStatusPage(
    api,
    () => memory,
    () => ["main", "bob"],
    "recall",
  );
  const ask = async (method = "GET") => {
    const answer = { body: undefined };
    const response = {
      writeHead(status, headers) {
        Object.assign(answer, { status, headers });
        return response;
      },
      end: (body) => void (answer.body = body),
    };
    assert.equal(await host.routes[0].handler({ method, url: host.routes[0].path }, response), true);
    return answer;
  };
  return { host, memory, ask };
}

test("the tab shows the route, and both are for those who may read", () => {
  const { host } = world();
  assert.equal(host.routes.length, 1);
  assert.equal(host.routes[0].auth, "gateway");
  assert.equal(host.tabs[0].surface, "tab");
  assert.equal(host.tabs[0].path, host.routes[0].path);
  assert.deepEqual(host.tabs[0].requiredScopes, ["operator.read"]);
});

test("it has what the status command says, of every agent", async () => {
  const { ask } = world();
  const { status, headers, body } = await ask();
  assert.equal(status, 200);
  assert.match(headers["content-type"], /^text\/html/);
  assert.match(headers["content-security-policy"], /default-src 'none'/);
  assert.equal(headers["cache-control"], "no-store");
  assert.match(body, /Level: recall\./);
  for (const agent of ["main", "bob"]) assert.match(body, new RegExp(`<pre>Agent ${agent} · Offbook`));
  assert.match(body, /came twice and are kept once/);
});

test("nothing in it is markup but its own", async () => {
  const { ask } = world({ status: ({ agentId }) => statusOf(agentId, { index: { ...statusOf("x").index, trouble: "<img src=x> & \"'" } }) });
  const { body } = await ask();
  assert.ok(!body.includes("<img"));
  assert.ok(body.includes("&#60;img src=x&#62; &#38; &#34;&#39;"));
  assert.ok(!page("off", ["</pre><script>alert(1)</script>"]).includes("<script"));
});

test("a provider that is away is told, not thrown", async () => {
  const { ask } = world({ status: away() });
  const { status, body } = await ask();
  assert.equal(status, 200);
  assert.match(body, /Offbook could not do this/);
});

test("it only reads", async () => {
  const { ask, memory } = world();
  assert.equal((await ask("POST")).status, 405);
  const { status, body } = await ask("HEAD");
  assert.equal(status, 200);
  assert.equal(body, undefined);
  assert.deepEqual(memory.calls, []);
});

test("a host without pages is left alone", () => {
  assert.doesNotThrow(() => registerStatusPage({}, fakeMemory, () => [], "recall"));
});

test("many agents are counted, not all shown", async () => {
  const agents = Array.from({ length: 30 }, (_, at) => `a${at}`);
  const { ask } = world({ status: ({ agentId }) => statusOf(agentId, { agents }) });
  const { body } = await ask();
  assert.equal(body.match(/<pre>Agent /g).length, 20);
  assert.match(body, /… and 12 more: openclaw offbook status/);
});
