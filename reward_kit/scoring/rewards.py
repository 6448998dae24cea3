# SPDX-License-Identifier: Apache-2.0
"""The rewards of a run: one, or another one for some of the splits.

    rollout ─▶ its sample's split ─▶ the reward of that split ─▶ verdict

Each keeps its own way of being called (worker processes, the event loop), its own bounds and its own parameters.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from reward_kit.config_models import RewardConfig, SandboxConfig
from reward_kit.errors import ConfigError
from reward_kit.reward_call import RewardCall
from reward_kit.reward_names import is_address
from reward_kit.scoring import defaults
from reward_kit.scoring.extras import versions_of
from reward_kit.scoring.opened import Opened, watched_import
from reward_kit.scoring.worker_call import WorkerCall
from reward_kit.utils.module_loader import forget, loading_within
from reward_kit.utils.project_files import Project, loose_values, others_than_imported, project_of
from reward_kit.utils.source_digest import source_digest

if TYPE_CHECKING:
    from reward_kit.remote.reward import RemoteReward

__all__ = ["Reward", "Rewards", "load_rewards"]


class Reward:
    """A reward of a run, and what it needs to be called."""

    def __init__(self, config: RewardConfig, function: Callable[..., Any] | None = None) -> None:
        """Load the reward the config names, or take the function given in its place."""
        self._given = function or _remote(config)
        self.config = config
        self.call = self._load()
        project = Project(Path.cwd(), {}) if self.is_remote else project_of(self.call.function)
        if others_than_imported(project) and self._given is None:  # as a file is loaded again that has changed
            forget(project.paths)
            self.call = self._load()
        self.opened = Opened(project, config)
        self._source, self._values = "", {}
        if not self.is_remote:
            self._source, self._values = source_digest(self.call.function), loose_values(self.call.function)

    def _load(self) -> RewardCall:
        config = self.config
        try:
            with _loading(config), loading_within(self.loading_seconds), watched_import(config.function_path):
                return RewardCall(self._given or config.function_path, config.params, config.invalid)
        except ImportError as error:
            raise ConfigError(f"The reward cannot be loaded: {error}") from error

    @property
    def identity(self) -> dict[str, Any]:
        """What makes it this reward: its name, digests of its code, and the packages that decide its verdicts.

        The same name with other source is another reward. Of one that is served, what its server says.
        """
        if self.is_remote:
            remote: Any = self.call.func
            told = remote.identity
            return {**told, "reward.params": {**self.config.params, **told.get("reward.params", {})}}
        name = self.call.name.replace(":", ".").rpartition(".")[2]
        return {
            "reward.function": name,
            "reward.source": self._source,
            "reward.files": dict(self.opened.project.files),
            "reward.values": self._values,
            "reward.extras": versions_of(self.opened.project),
            "reward.params": self.config.params,
        }

    @property
    def is_remote(self) -> bool:
        """Whether it is served somewhere: its verdicts may have been paid for."""
        return self.call.is_remote

    @property
    def isolated_with(self) -> list[str]:
        """Those resources that it asks for and that the `sandbox` settings are about."""
        return [name for name in ("sandbox", "isolated_python") if self.call.wants(name)]

    @property
    def judges_groups(self) -> bool:
        """Whether it judges all rollouts of a sample at once."""
        return self.call.mode == "batch"

    @property
    def timeout(self) -> float:
        """Seconds one call may take."""
        return self.config.timeout or self.call.timeout or defaults.TIMEOUT_SECONDS

    @property
    def loading_seconds(self) -> float:
        """Seconds that importing it may take, here and in each worker."""
        return max(defaults.LOADING_SECONDS, self.config.timeout or defaults.TIMEOUT_SECONDS)

    def worker_call(self, sandbox: SandboxConfig) -> Callable[[], WorkerCall]:
        """What a worker process calls to get at the reward: by import path where there is one, else by value.

        What the reward asks for to run code, each worker opens itself, as `sandbox` says.
        """
        resources = None
        if names := self.isolated_with:
            from reward_kit.sandbox.own import own_resources

            resources = partial(own_resources, sandbox, names)
        config = self.config
        if self._given is not None:
            return partial(WorkerCall, self._given, config.params, resources, on_invalid=config.invalid, watch=True)
        return partial(
            WorkerCall, config.function_path, config.params, resources, self.loading_seconds,
            on_invalid=config.invalid, watch=True,
        )  # fmt: skip


def _remote(config: RewardConfig) -> RemoteReward | None:
    """The reward that is served at the config's address, if it names one."""
    if not is_address(config.function_path):
        return None
    from reward_kit.remote.reward import open_remote  # here: most rewards are on this machine

    return open_remote(config.function_path, config.remote, stops_run=True)


@contextlib.contextmanager
def _loading(config: RewardConfig) -> Iterator[None]:
    """Keep somebody's module from ending this process without a word while it is imported."""

    def refuse(status: int) -> NoReturn:
        raise ConfigError(
            f"The reward {config.function_path!r} calls os._exit({status}) while it is imported. Remove that call."
        )

    leave, os._exit = os._exit, refuse
    try:
        yield
    finally:
        os._exit = leave


class Rewards:
    """The rewards of a run: one for all samples, or one for each split and one for the rest."""

    def __init__(self, others: Reward, by_split: Mapping[str, Reward] | None = None) -> None:
        """Judge samples of the splits in `by_split` by their reward there, and all others by `others`."""
        self.others = others
        self.by_split = dict(by_split or {})

    def of(self, split: str | None) -> Reward:
        """The one that judges samples of this split."""
        return self.others if split is None else self.by_split.get(split, self.others)

    @property
    def named(self) -> dict[str, Reward]:
        """Each of them by its split; the one for all others by no name."""
        return {"": self.others, **self.by_split}

    @property
    def are_remote(self) -> bool:
        """Whether one of them is served somewhere: verdicts may have been paid for."""
        return any(reward.is_remote for reward in self.named.values())

    @property
    def judge_groups(self) -> bool:
        """Whether one of them judges all rollouts of a sample at once; the rollouts of all samples go together then."""
        return any(reward.judges_groups for reward in self.named.values())


def load_rewards(config: RewardConfig, function: Callable[..., Any] | None = None) -> Rewards:
    """The rewards a config names; `function` stands in for the one that its `function_path` names."""
    return Rewards(Reward(config, function), {split: Reward(part) for split, part in config.by_split.items()})
