# SPDX-License-Identifier: Apache-2.0
"""The turns of an agent's episodes: in a file of their own until an episode has ended, so that none is paid twice."""

from __future__ import annotations

import logging

from reward_kit.config_models import AgentConfig
from reward_kit.execution.engine import End
from reward_kit.execution.parts.part import Entry, Part
from reward_kit.generation.usage import summed, used_by
from reward_kit.models import Completion
from reward_kit.storage.run_directory import RunDirectory
from reward_kit.storage.turn_journal import TurnJournal

__all__ = ["AgentTurns"]

_log = logging.getLogger(__name__)


class AgentTurns(Part):
    """For a run whose model is an agent."""

    def check(self, *, planning: bool) -> None:
        """Refuse settings of an agent that cannot be right."""
        del planning
        if self.config.agent is not None and self.inputs.phase != "execution":
            from reward_kit.agent.checks import check_agent  # here: most runs have no agent

            check_agent(self.config.agent)

    async def before(self, entry: Entry) -> None:
        """Open the turns of unfinished episodes."""
        if self.config.agent is not None and entry.workload.needs_model and entry.models is None:
            _see_the_environment(self.config.agent, entry.directory)
            directory = entry.directory
            turns = TurnJournal(directory.episodes_path, always_on_disk=directory.always_on_disk)
            entry.turns = entry.files.enter_context(turns)
            entry.keep.append(turns.sync)

    def after(self, entry: Entry, end: End) -> End:
        """Drop the turns of finished episodes; what others used, of which no rollout tells, was spent all the same."""
        if entry.turns is not None:
            index = entry.rollouts.index()
            recordings = entry.turns.unfinished(lambda sample_id, draw: index.status(sample_id, draw) is not None)
            left = [turn for recording in recordings for turn in recording.turns]
            entry.turns.drop(lambda sample_id, draw: index.status(sample_id, draw) == "ok")  # others may be tried again
            replies = (Completion.model_validate(turn.reply | {"message": {"role": "assistant"}}) for turn in left)
            entry.money.unfinished = summed(usage for reply in replies for usage in used_by(reply))
        return end


def _see_the_environment(agent: AgentConfig, directory: RunDirectory) -> None:
    """Say where the source of an agent's worlds is not what it was. It may have been mended: nothing is refused.

    Steps that are played again are compared with the record, whatever the source.
    """
    from reward_kit.agent.from_settings import environment_source  # here: most runs have no agent

    source = environment_source(agent)
    if directory.noted("agent_source") not in (None, source):
        _log.warning(
            "The source of %r has changed since this run was started, so earlier and later episodes may differ. "
            "To start from the beginning, choose another `output.output_dir`.",
            agent.environment or agent.tools,
        )
    directory.note("agent_source", source)
