# SPDX-License-Identifier: Apache-2.0
"""Datasets in an object store: the same rows as from a file of this machine, whatever the connection does."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.errors import ConfigError, DatasetError
from reward_kit.execution.pipeline import EvaluationPipeline
from reward_kit.stores import objects
from tests.loopback.object_store import SECRET, Fault, ObjectStore, Request
from tests.loopback.runs import config, questions, write_rows

ROOT = Path(__file__).parents[2]


def rows_of(path: str, **settings: Any) -> list[tuple[str, str]]:
    stream = load_samples(DatasetConfig(path_or_name=path, **settings))
    return [(sample.id, str(sample.messages[-1].content)) for sample in stream]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows.jsonl", questions(50))


def test_every_format_reads_as_it_does_on_this_machine(s3: ObjectStore, rows: Path, tmp_path: Path) -> None:
    plain = rows.read_bytes()
    table = pa.Table.from_pylist(questions(50))
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=7)
    table.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    s3.put("d/rows.jsonl", plain)
    s3.put("d/rows.jsonl.gz", gzip.compress(plain))
    s3.put("d/rows.jsonl.zst", pa.compress(plain, "zstd", asbytes=True))
    for name in ("rows.parquet", "rows.csv"):
        s3.put(f"d/{name}", (tmp_path / name).read_bytes())
    expected = rows_of(str(rows))
    assert len(expected) == 50
    for name in ("rows.jsonl", "rows.jsonl.gz", "rows.jsonl.zst", "rows.parquet", "rows.csv"):
        assert rows_of(f"s3://{s3.bucket}/d/{name}") == expected, name


def test_a_glob_and_a_folder_are_read_in_the_order_of_their_names(s3: ObjectStore) -> None:
    for number in (2, 0, 1):
        s3.put(f"d/part-{number}.jsonl", b'{"id":"r%d","user_query":"q"}\n' % number)
    s3.put("d/notes.txt", b"no data")
    names = ["r0", "r1", "r2"]
    assert [name for name, _ in rows_of(f"s3://{s3.bucket}/d/part-*.jsonl")] == names
    assert [name for name, _ in rows_of(f"s3://{s3.bucket}/d/")] == names
    assert [name for name, _ in rows_of(f"s3://{s3.bucket}/d")] == names


def test_compressed_files_of_this_machine_are_read_too(rows: Path, tmp_path: Path) -> None:
    packed = tmp_path / "rows.jsonl.zst"
    packed.write_bytes(pa.compress(rows.read_bytes(), "zstd", asbytes=True))
    assert rows_of(str(packed)) == rows_of(str(rows))


@pytest.mark.parametrize("seed", range(6))
def test_a_connection_that_breaks_anywhere_neither_drops_nor_repeats_a_row(
    s3: ObjectStore, rows: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(objects, "_BLOCK", 700)
    monkeypatch.setattr("reward_kit.stores.store._FIRST_WAIT", 0.01)
    s3.put("rows.jsonl", rows.read_bytes())
    dice = random.Random(seed)
    faults = [Fault(download=0.5), Fault(download=0.0), Fault(status=503), Fault(status=500, code="InternalError"),
              Fault(lost_answer=True)]  # fmt: skip

    def react(_: Request) -> Fault | None:
        return dice.choice(faults) if dice.random() < 0.25 else None

    s3.react = react
    assert rows_of(f"s3://{s3.bucket}/rows.jsonl") == rows_of(str(rows))


def test_rows_are_read_only_as_far_as_they_are_wanted(
    s3: ObjectStore, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_BLOCK", 256)
    s3.put("rows.jsonl", rows.read_bytes())
    assert len(rows_of(f"s3://{s3.bucket}/rows.jsonl", max_samples=2)) == 2
    assert sum(request.method == "GET" and "Range" in request.headers for request in s3.requests) <= 2


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(
    s3: ObjectStore, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "_BLOCK", 512)
    monkeypatch.setattr(objects, "_LOOK_AGAIN", 0.0)
    s3.put("rows.jsonl", rows.read_bytes())
    stream = iter(load_samples(DatasetConfig(path_or_name=f"s3://{s3.bucket}/rows.jsonl")))
    next(stream)
    s3.put("rows.jsonl", rows.read_bytes().replace(b"What", b"Whom"))
    with pytest.raises(DatasetError, match="was changed or removed while it was read"):
        list(stream)


def test_the_fingerprint_follows_the_content(s3: ObjectStore, rows: Path) -> None:
    address = f"s3://{s3.bucket}/rows.jsonl"
    s3.put("rows.jsonl", rows.read_bytes())
    first = load_samples(DatasetConfig(path_or_name=address)).fingerprint()
    assert first == load_samples(DatasetConfig(path_or_name=address)).fingerprint()
    s3.put("rows.jsonl", rows.read_bytes().replace(b"What", b"Whom"))
    assert first != load_samples(DatasetConfig(path_or_name=address)).fingerprint()


def test_a_finished_run_is_known_as_such_without_reading_its_dataset_again(
    s3: ObjectStore, rows: Path, tmp_path: Path
) -> None:
    s3.put("rows.jsonl", rows.read_bytes())
    settings = config(tmp_path, dataset__path_or_name=f"s3://{s3.bucket}/rows.jsonl")
    assert EvaluationPipeline(settings).run().judged == 50
    s3.requests.clear()
    assert EvaluationPipeline(settings).run().counters.generated == 0
    assert {request.method for request in s3.requests} == {"HEAD"}


def test_rollouts_of_a_store_are_scored(s3: ObjectStore, tmp_path: Path) -> None:
    EvaluationPipeline(config(tmp_path), phase="inference").run()
    for name in ("rollouts.jsonl", "samples.jsonl"):
        s3.put(name, (tmp_path / "run" / name).read_bytes())
    settings = config(
        tmp_path, rollouts_file=f"s3://{s3.bucket}/rollouts.jsonl", output__output_dir=str(tmp_path / "scored")
    )
    assert EvaluationPipeline(settings).run().judged == 4
    assert EvaluationPipeline(settings).run().counters.judged == 0


def test_a_dataset_in_memory_and_options_that_name_the_endpoint(
    s3: ObjectStore, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe_file("/d/rows.jsonl", rows.read_bytes())
    assert rows_of("memory://d/rows.jsonl") == rows_of(str(rows))
    s3.put("rows.jsonl", rows.read_bytes())
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    options = {"endpoint_url": s3.endpoint, "key": "some-key-of-mine", "secret": SECRET}
    assert rows_of(f"s3://{s3.bucket}/rows.jsonl", storage_options=options) == rows_of(str(rows))


def test_options_with_credentials_are_written_nowhere(
    s3: ObjectStore, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    s3.put("rows.jsonl", rows.read_bytes())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    options = {"endpoint_url": s3.endpoint, "key": "AKIAWHATEVERWHATEVER", "secret": SECRET}
    settings = config(
        tmp_path, dataset__path_or_name=f"s3://{s3.bucket}/rows.jsonl", dataset__storage_options=options,
        output__mirror=f"s3://{s3.bucket}/mirror", output__storage_options=options, output__mirror_seconds=0.05,
    )  # fmt: skip
    with caplog.at_level("DEBUG", logger="reward_kit"):
        assert EvaluationPipeline(settings).run().not_mirrored is None
    written = [path.read_bytes() for path in (tmp_path / "run").iterdir()] + [s3.get(key) for key in s3.keys("mirror")]
    assert len(written) > 10
    for text in [*written, caplog.text.encode()]:
        assert SECRET.encode() not in text and b"AKIAWHATEVERWHATEVER" not in text
    kept = (tmp_path / "run" / "config.yaml").read_text()
    assert "# dataset.storage_options.secret holds a credential and is not kept" in kept
    assert s3.endpoint in kept, "what is no credential is kept, so that the config is a valid input"


@pytest.mark.parametrize(
    ("address", "fault", "said"),
    [
        ("s3://no-such-bucket-here/rows.jsonl", None, "does not exist"),
        ("s3://{bucket}/nothing.jsonl", None, "does not exist"),
        ("s3://{bucket}/nothing-*.jsonl", None, "does not exist, or matches nothing"),
        ("s3://{bucket}/rows.jsonl", Fault(status=403, code="AccessDenied"), "rights are missing"),
        ("ftps3://x/rows.jsonl", None, "not a known kind of store"),
    ],
)
def test_what_is_wrong_with_an_address_is_one_sentence_that_names_the_setting(
    s3: ObjectStore, address: str, fault: Fault | None, said: str
) -> None:
    s3.react = lambda _: fault
    with pytest.raises((DatasetError, ConfigError), match=said) as caught:
        rows_of(address.format(bucket=s3.bucket))
    assert "dataset.path_or_name" in str(caught.value) or "Use s3://" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_credentials_are_told(s3: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(DatasetError, match="credentials"):
        rows_of(f"s3://{s3.bucket}/rows.jsonl")


@pytest.mark.parametrize(
    ("scheme", "module", "extra"),
    [("s3", "s3fs", "aws"), ("gs", "gcsfs", "gcp"), ("hf", "huggingface_hub", "hf"), ("s3", "fsspec", "aws"),
     ("memory", "fsspec", "aws")],
)  # fmt: skip
def test_a_missing_package_names_the_extra_that_mends_it(scheme: str, module: str, extra: str) -> None:
    program = f"""
import sys
sys.modules[{module!r}] = None
from reward_kit.config_models import DatasetConfig
from reward_kit.datasets import load_samples
from reward_kit.errors import MissingExtraError
try:
    load_samples(DatasetConfig(path_or_name="{scheme}://bucket/rows.jsonl"))
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"reward-kit[{extra}]" in done.stdout


def test_a_run_without_an_address_imports_nothing_of_stores(tmp_path: Path) -> None:
    program = f"""
import sys
from reward_kit.execution.pipeline import EvaluationPipeline
EvaluationPipeline({config(tmp_path)!r}).run()
print(sorted({{"fsspec", "s3fs", "gcsfs", "boto3", "botocore", "reward_kit.storage.mirror"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
