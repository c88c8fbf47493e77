"""A small agent whose context is far too small for its conversation, and never overflows.

    offbook serve &
    python examples/hot_swap_agent.py                                       # a small model on this machine
    python examples/hot_swap_agent.py --model-server http://127.0.0.1:8080/v1 --model NAME
    python examples/hot_swap_agent.py --chat                                # you are the user

Any server that speaks OpenAI's chat completions will do; its key is taken from OPENAI_API_KEY. Without one, llama.cpp
runs a model here: `pip install 'offbook[local]'`, and weights of your choice (--gguf) or the small ones that Offbook
knows. Stop `offbook serve` while it talks: the agent goes on, and compacts by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from offbook import AsyncClient, HotSwapSession
from offbook.client.swap_question import SwapEvent
from offbook.model.home import home_folder
from offbook.model.summary import Ledger

INSTRUCTIONS = "You help somebody who restores a small boat. Answer in two or three short sentences."
CONVERSATION = """
I have bought a wooden boat. She is called Aurora, she was built in 1962 in Marstal, and she is 7.4 metres long.
The hull is larch on oak. Three planks below the waterline on the port side are soft. What should I look at first?
My budget is 4,200 euros until the end of May, and the yard in Svendborg takes 310 euros a month for the shed.
I decided to replace the three planks myself. The larch comes from Henrik Dam, 28 mm thick, 145 euros in all.
The engine is a Bukh DV10. It starts, but it smokes black under load. What could that be?
Henrik says that the injector is worn. A new one costs 89 euros at Thune Marine, order number TM-4471.
I have ordered the injector today. It should be here on 14 March. Please remember the order number.
The mast is spruce, 8.9 metres, and there is a crack of 40 cm at the spreaders. Can it be glued?
I will glue it with epoxy, and my neighbour Ane helps me on Saturday at ten. She has the long clamps.
The sails are from 1998. The genoa is fine, the mainsail has to be repaired at the leech. Elvstrom wants 380 euros.
The injector came, but it is the wrong one: they sent TM-4417. I sent it back and asked for the right one.
Correction about the shed: from April on it is 290 euros a month, since I share it with Ane.
The planks are in. I used bronze screws, 5 by 60, two hundred of them, and red lead between the seams.
Which paint would you use below the waterline, if the boat lies in brackish water from May to October?
I took your advice and bought two tins. We launch her on 9 May at high water, at 11:20.
Now tell me: what is she called, which order number did I want, and what does the shed cost now?
"""
FACTS = ("Aurora", "TM-4471", "290 euros")
"""What the last question asks for: a very small model may miss it, the context it is given must not."""


# ── a model ───────────────────────────────────────────────────────────────────────────────────


class ModelTrouble(Exception):
    """The model's server did not give an answer, said in one line."""


class ModelServer(NamedTuple):
    url: str
    model: str
    key: str

    def answer(self, messages: list[dict[str, Any]]) -> tuple[str, int | None]:
        """What the model says, which may be nothing, and how many tokens the prompt was, where the server counts."""
        body = {
            "model": self.model,
            "messages": messages,
            "max_tokens": 120,
            "temperature": 0.3,
            "frequency_penalty": 0.6,
        }
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.key}"}
        url = f"{self.url.rstrip('/')}/chat/completions"
        try:
            request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310
            with urlopen(request, timeout=300) as response:  # noqa: S310 - the address is the user's own
                answer = json.load(response)
            text = answer["choices"][0]["message"].get("content") or ""
            return text.strip(), (answer.get("usage") or {}).get("prompt_tokens")
        except HTTPError as error:
            said = " ".join(error.read(300).decode(errors="replace").split())
            raise ModelTrouble(f"{url} answers {error.code} {error.reason}: {said}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise ModelTrouble(f"{url} gives no answer: {error}") from None
        except (LookupError, TypeError, AttributeError):
            raise ModelTrouble(f"{url} answers, but not as OpenAI's chat completions do") from None


@contextmanager
def local_server(weights: Path | None, window: int) -> Iterator[ModelServer]:
    """llama.cpp in a process of its own, as the provider runs it for its summaries."""
    from offbook.models.summarizers import llama

    if find_spec("xllamacpp") is None:
        sys.exit("No model server was given and llama.cpp is not installed: run `pip install 'offbook[local]'`.")
    path = weights or llama.find(home_folder(os.environ) / "models")
    if path is None:
        sys.exit("There is no model: give --gguf PATH, or run `offbook model install --summarizer`.")
    key = secrets.token_urlsafe(16)
    order = {"path": str(path), "context_tokens": window + 512, "threads": 2, "key": key}
    command = [sys.executable, "-m", "offbook.models.summarizers.llama_process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(order).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline().decode().strip()
        try:
            if not line.startswith("{"):
                sys.exit(f"llama.cpp cannot load {path}: {line}")
            yield ModelServer(json.loads(line)["url"] + "/v1", path.stem, key)
        finally:
            process.kill()


# ── the agent ─────────────────────────────────────────────────────────────────────────────────


async def scripted() -> AsyncIterator[str]:
    for line in CONVERSATION.strip().splitlines():
        yield line


async def typed() -> AsyncIterator[str]:
    """Until an empty line, or the end of what is typed. What is still to be delivered goes on meanwhile."""
    while True:
        try:
            text = await asyncio.to_thread(input, "\n> ")
        except EOFError:
            print()
            return
        if not text:
            return
        yield text


async def talk(server: ModelServer, session: HotSwapSession, said: AsyncIterator[str]) -> None:
    seen = len(session.events)
    async for text in said:
        session.add(("user", text))
        messages = await session.openai_messages()  # between two messages: a swap that is due happens here
        for event in list(session.events)[seen:]:
            show(event, session.stats.last_ledger)
        seen = len(session.events)
        prompt = [{"role": "system", "content": INSTRUCTIONS}, *messages]
        answer, prompt_tokens = await asyncio.to_thread(server.answer, prompt)
        session.report_usage(prompt_tokens)
        if answer:
            session.add(("assistant", answer))
        share = session.used_tokens / session.context_window
        counted = "not counted by the server" if prompt_tokens is None else f"{prompt_tokens:,} tokens"
        print(f"\nuser       {text}\nassistant  {answer or '(nothing)'}")
        print(f"           [prompt: {counted}; {share:.0%} of the window in use]")


def show(event: SwapEvent, ledger: Ledger | None) -> None:
    print(f"\n── {event.kind}: {event.reason}")
    if event.kind not in ("swapped", "compacted"):
        return
    print(f"   {event.messages_before} messages, {event.tokens_before:,} tokens → ", end="")
    print(f"{event.messages_after} messages, {event.tokens_after:,} tokens (generation {event.generation})")
    if event.kind == "swapped" and ledger is not None:
        verbatim = sum(part.last_seq - part.first_seq + 1 for part in ledger.verbatim)
        older = sum(part.last_seq - part.first_seq + 1 for part in ledger.summaries)
        print(f"   {verbatim} messages word for word, {older} by their memory", end="")
        print(f"; particulars no longer in the text: {ledger.dropped_count}")
        for lost in ledger.dropped[:3]:
            print(f"     {lost.kind} {lost.text!r}, said in message {lost.seq}: `expand` brings it back")


async def main() -> None:
    arguments = parsed()
    said = typed() if arguments.chat else scripted()
    async with AsyncClient(agent_id="example") as memory:
        session = HotSwapSession(memory, arguments.session, context_window=arguments.window)
        known = await session.start()
        print(f"{len(known)} messages from before; {session.events[-1].kind}: {session.events[-1].reason or 'goes on'}")
        if arguments.model_server:
            server = ModelServer(arguments.model_server, arguments.model, os.environ.get("OPENAI_API_KEY", "none"))
            await talk(server, session, said)
        else:
            with local_server(arguments.gguf, arguments.window) as server:
                await talk(server, session, said)
        if not arguments.chat:
            text = str(session.as_openai())
            print("\nin the context at the end:", {fact: fact in text for fact in FACTS})
        stats = session.stats
        trouble = dict(stats.fallbacks) or "no trouble"
        print(f"{stats.swaps} swaps, {stats.compactions} compactions of its own, {trouble}")
        print(f"the agent waited {stats.waited_ms:.0f} ms for its memory in all")
        await session.close()


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-server", metavar="URL", help="of an OpenAI-compatible server, up to /v1")
    parser.add_argument("--model", default="default", help="its name at that server")
    parser.add_argument("--gguf", type=Path, metavar="PATH", help="weights for llama.cpp on this machine")
    parser.add_argument("--window", type=int, default=1_200, help="tokens of the context window")
    parser.add_argument("--session", default=f"example:{secrets.token_hex(4)}", help="to go on with an earlier one")
    parser.add_argument("--chat", action="store_true", help="type yourself; an empty line or Ctrl-D ends it")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except ModelTrouble as trouble:
        sys.exit(f"The model: {trouble}")
