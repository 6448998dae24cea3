# SPDX-License-Identifier: Apache-2.0
"""For tests of your own: an OpenAI-compatible mock endpoint with scripted answers and faults.

>>> import json
>>> from urllib.request import Request, urlopen
>>> with MockServer({"rules": [{"pattern": "capital of France", "response": "Paris."}]}) as server:
...     body = {"model": "m", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
...     asked = Request(f"{server.url}/chat/completions", json.dumps(body).encode(), method="POST")
...     answer = json.load(urlopen(asked))
>>> answer["choices"][0]["message"]["content"]
'Paris.'
>>> [request.prompt for request in server.requests]
['What is the capital of France?']
"""

from __future__ import annotations

from reward_kit.generation.mock_script import Fault, MockScript, ScriptedAnswer, ScriptedCall
from reward_kit.generation.mock_server import AskedRequest, MockServer

__all__ = ["AskedRequest", "Fault", "MockScript", "MockServer", "ScriptedAnswer", "ScriptedCall"]
