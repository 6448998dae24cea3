# SPDX-License-Identifier: Apache-2.0
"""Hugging Face datasets as a source of rows (extra `hf`)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets.rows import BadRow, BadRows, Origin, Row, as_table, cells
from reward_kit.errors import DatasetError, needs_extra

__all__ = ["HuggingFaceSource"]

_log = logging.getLogger(__name__)


class HuggingFaceSource:
    """One split of a dataset that `datasets.load_dataset` knows: a name on the Hub, a folder, or a builder's name."""

    def __init__(self, config: DatasetConfig, name: str) -> None:
        self._config = config
        self._name = name

    def rows(self, bad: BadRows) -> Iterator[Row]:
        """The rows of the split, streamed unless the config says otherwise."""
        origin = Origin(self._name, "row")
        for number, columns in enumerate(self._streamed(), start=1):
            try:
                row = Row(origin, number, cells(columns, tuples=True), as_table)
            except BadRow as problem:
                bad.report(origin, number, str(problem))
            else:
                yield row

    def _streamed(self) -> Iterator[Mapping[str, Any]]:
        """What the library reads, from the network as like as not; whatever it raises is a `DatasetError`."""
        rows = iter(_one_split(self._name, self._load()))
        while True:
            try:
                columns = next(rows)
            except StopIteration:
                return
            except Exception as error:
                raise DatasetError(
                    f"Reading the Hugging Face dataset {self._name!r} failed before its end: {type(error).__name__}: "
                    f"{error}. Run the same command again to go on."
                ) from error
            yield columns

    def size_hint(self, up_to: int | None) -> int | None:
        """Unknown until the dataset has been read."""
        return None

    def fingerprint(self) -> str:
        """What was asked for; the Hub keeps its content under that name."""
        config = self._config
        parts = [self._name, config.config_name, config.split, config.data_files]
        parts += [] if config.revision is None else [config.revision]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def _load(self) -> Any:
        with needs_extra(f"The Hugging Face dataset {self._name!r}", "hf"):
            from datasets import load_dataset
            from datasets.exceptions import DatasetsError
        config = self._config
        try:
            with _retries_in_one_line():
                return load_dataset(
                    self._name,
                    config.config_name,
                    split=config.split,
                    data_files=config.data_files,
                    revision=config.revision,
                    streaming=config.streaming,
                    **({"storage_options": config.storage_options} if config.storage_options else {}),
                )
        except ConnectionError as error:
            raise DatasetError(
                f"The Hugging Face dataset {self._name!r} cannot be loaded: {error}. Check the network. Without one, "
                "download the data elsewhere and name the file: `dataset.path_or_name=FILE.jsonl`."
            ) from error
        except (OSError, ValueError, RuntimeError, DatasetsError) as error:
            raise DatasetError(
                f"The Hugging Face dataset {self._name!r} cannot be loaded: {error}. Check `dataset.path_or_name`, "
                "`dataset.config_name` and `dataset.split`, or name a local file with its suffix."
            ) from error


class _Retries(logging.Filter):
    """Takes the Hub library's lines about retries out of its log: the first becomes a sentence, the rest is for us."""

    def __init__(self) -> None:
        super().__init__()
        self._said = False

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "thrown while requesting" not in message and "[Retry " not in message:
            return True
        _log.debug("%s", message)
        if not self._said:
            self._said = True
            _log.warning("The Hugging Face Hub does not answer as it should. Trying again, for up to half a minute.")
        return False


@contextmanager
def _retries_in_one_line() -> Iterator[None]:
    """While the Hub is asked for a dataset, say once that requests are repeated, and not once for each of them."""
    log = logging.getLogger("huggingface_hub.utils._http")
    retries = _Retries()
    log.addFilter(retries)
    try:
        yield
    finally:
        log.removeFilter(retries)


def _one_split(name: str, loaded: Any) -> Iterable[Mapping[str, Any]]:
    """`loaded` itself, or its only split."""
    if not isinstance(loaded, dict):
        return loaded  # type: ignore[no-any-return]  # `datasets` is not typed
    if len(loaded) != 1:
        known = ", ".join(map(repr, loaded))
        raise DatasetError(
            f"The Hugging Face dataset {name!r} has several splits ({known}). Choose one: `dataset.split=…`."
        )
    return next(iter(loaded.values()))
