# SPDX-License-Identifier: Apache-2.0
"""Token ids from the endpoint to training rows: each is written down once, and every prompt can be had again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reward_kit.agent import Answer, Episodes
from reward_kit.agent.branching import Branches
from reward_kit.agent.environment import environment_of
from reward_kit.agent.recorded import with_whole_prompts
from reward_kit.agent.step_credit import CreditSettings
from reward_kit.agent.step_rows import episode_rows
from reward_kit.agent.transcript import Transcript
from reward_kit.config_models import BranchingConfig, Sampling
from reward_kit.models import Completion, EvaluateResult, Message, Record, Rollout, Tokens
from reward_kit.storage.judged_episodes import episode_of
from reward_kit.storage.turn_journal import TurnJournal
from tests.agent.worlds import SAMPLE, Account, Model, call, calls, essence, says, settings, turn_of

SCRIPT = [calls(call("deposit", {"amount": 3})), calls(call("balance_now")), says("There are 3.")]
IDS = st.lists(st.integers(0, 5), max_size=4)


class Server(Model):
    """A model that tells its tokens, one per character. In the turn that it `forgets`, the prompt is rendered anew."""

    def __init__(self, script: Any, forgets: int | None = None) -> None:
        super().__init__(script)
        self.prompts: dict[tuple[int, int], list[int]] = {}
        self.forgets = forgets

    async def generate(self, messages: Sequence[Message], **given: Any) -> list[Any]:
        (completion,) = await super().generate(messages, **given)
        turn, draw = turn_of(messages), given["draws"][0]
        prompt = [ord(letter) for message in messages for letter in told(message)]
        prompt = [0, *prompt] if turn == self.forgets else prompt
        self.prompts[draw, turn] = prompt
        assert isinstance(completion, Completion)
        ids = [ord(letter) for letter in told(completion.message)]
        tokens = Tokens(prompt_ids=prompt, ids=ids, logprobs=[-0.5] * len(ids))
        return [completion.model_copy(update={"tokens": tokens})]


def told(message: Message) -> str:
    return message.text + "".join(each.function.arguments for each in message.tool_calls or ())


def prompts_of(rollout: Rollout) -> list[list[int] | None]:
    steps = with_whole_prompts(step.tokens for step in rollout.steps or ())
    return [None if tokens is None else tokens.prompt_ids for tokens in steps]


async def played(server: Server, journal: TurnJournal | None = None, branches: Branches | None = None) -> list[Rollout]:
    play = Episodes(server, Sampling(), None, environment_of(Account), settings(), journal=journal, branches=branches)
    return await play(SAMPLE, [0] if branches is None else [draw for level in branches.levels() for draw in level])


async def test_each_token_is_written_down_once_and_prompts_can_be_had_again() -> None:
    server = Server(SCRIPT)
    (rollout,) = await played(server)
    steps = [step.tokens for step in rollout.steps or () if step.tokens is not None]
    written = [token for tokens in steps for token in [*(tokens.prompt_ids or ()), *(tokens.ids or ())]]
    assert written == [*server.prompts[0, 2], *(steps[-1].ids or ())]
    assert prompts_of(rollout) == [server.prompts[0, turn] for turn in range(3)]


async def test_a_prompt_that_was_rendered_anew_is_whole_and_says_so() -> None:
    server = Server(SCRIPT, forgets=1)
    (rollout,) = await played(server)
    assert [step.tokens and step.tokens.whole_prompt for step in rollout.steps or ()] == [None, True, True]
    assert prompts_of(rollout) == [server.prompts[0, turn] for turn in range(3)]


async def test_an_episode_that_goes_on_has_the_same_tokens(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    with TurnJournal(path) as journal:
        (whole,) = await played(Server(SCRIPT), journal)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    with TurnJournal(path) as journal:
        (again,) = await played(Server(SCRIPT), journal)
    assert essence(again) == essence(whole)


async def test_a_branch_has_the_prompts_that_it_was_sent() -> None:
    server = Server(SCRIPT)
    parent, branch = await played(server, branches=Branches(BranchingConfig(total=1, at=[2]), 1))
    assert branch.branch is not None and branch.branch.step == 2
    assert prompts_of(branch) == prompts_of(parent)
    assert server.prompts[branch.response_index, 2] == prompts_of(branch)[2]
    assert [step.tokens for step in branch.steps or ()] == [step.tokens for step in parent.steps or ()]


async def test_a_row_of_a_step_has_all_of_its_prompt() -> None:
    server = Server(SCRIPT, forgets=2)
    (rollout,) = await played(server)
    episode = episode_of(Record.of(rollout, EvaluateResult(score=1.0)))
    rows = [*episode_rows([[episode]], "steps", CreditSettings(), Counter(), with_tokens=True)]
    assert [row["tokens"]["prompt_ids"] for row in rows] == [server.prompts[0, turn] for turn in range(3)]


@given(st.lists(st.tuples(st.booleans(), st.one_of(st.none(), IDS), st.one_of(st.none(), IDS)), max_size=8))
def test_whatever_an_endpoint_tells_can_be_had_again(turns: list[tuple[bool, Any, Any]]) -> None:
    transcript, known, given_tokens = Transcript(SAMPLE, None), list[int](), list[Tokens | None]()
    for goes_on, prompt, ids in turns:
        whole = None if prompt is None else [*known, *prompt] if goes_on else prompt
        tokens = None if whole is None and ids is None else Tokens(prompt_ids=whole, ids=ids)
        known = known if whole is None else [*whole, *(ids or ())]
        given_tokens.append(tokens)
        transcript.reply(Completion(message=says("x"), tokens=tokens))
        transcript.answer(Answer(), [])
    assert [*with_whole_prompts(step.tokens for step in transcript.steps)] == given_tokens
