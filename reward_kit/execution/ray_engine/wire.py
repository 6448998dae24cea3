# SPDX-License-Identifier: Apache-2.0
"""Values of the spine as bytes, between the driver and its actors.

Pydantic's own way of being pickled costs several times what the values do. Here a model is its class, its values and
the names that were given, and whatever occurs twice in a pack (a sample in its n rollouts) travels once.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from reward_kit import models
from reward_kit.models import Rollout, Sample
from reward_kit.utils.trusted import rebuilt

__all__ = ["pack", "pack_without_samples", "unpack", "with_sample"]

_Reduced = tuple[Callable[..., Any], tuple[Any, ...]]


def _reduce(value: BaseModel) -> _Reduced:
    return rebuilt, (type(value), value.__dict__, value.__pydantic_fields_set__)


def _none() -> None:
    return None


def _reduce_to_nothing(_: Sample) -> _Reduced:
    return _none, ()


_KINDS = [
    kind
    for kind in vars(models).values()
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == models.__name__
    if not kind.__private_attributes__ and kind.model_config.get("extra") != "allow"
]
_TABLE: dict[type, Callable[[Any], Any]] = {**copyreg.dispatch_table, **dict.fromkeys(_KINDS, _reduce)}
_WITHOUT_SAMPLES = {**_TABLE, Sample: _reduce_to_nothing}


def pack(value: object) -> bytes:
    """The value as bytes, for `unpack` in another process."""
    return _pickled(value, _TABLE)


def pack_without_samples(value: object) -> bytes:
    """The same, with nothing in the place of each sample: whoever gave them out has them."""
    return _pickled(value, _WITHOUT_SAMPLES)


def _pickled(value: object, table: dict[type, Callable[[Any], Any]]) -> bytes:
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, 5)
    pickler.dispatch_table = table
    pickler.dump(value)
    return buffer.getvalue()


def unpack(blob: bytes) -> Any:
    """What was packed. Only ever from this run's own actors, or its driver."""
    return pickle.loads(blob)


def with_sample(rollout: Rollout, sample: Sample) -> Rollout:
    """A rollout that came without its sample, which it is given back."""
    rollout.__dict__["sample"] = sample
    return rollout
