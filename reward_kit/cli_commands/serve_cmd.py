# SPDX-License-Identifier: Apache-2.0
"""`reward-kit serve`: a reward, or several, as an HTTP service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reward_kit.cli_commands.options import MOST, FiniteRange, NamedPath, completed_by
from reward_kit.cli_commands.output import echo, name_settings
from reward_kit.doors import Door

if TYPE_CHECKING:
    from reward_kit.serving.app import RewardApp
    from reward_kit.serving.settings import ServeSettings

__all__ = ["serve"]

_FILE = NamedPath(path_type=Path)
_SECONDS = FiniteRange(min=0, min_open=True)


@click.command()
@click.argument("rewards", nargs=-1, metavar="REWARD…", shell_complete=completed_by("complete_rewards"))
@click.option(
    "--config", type=_FILE, help="A file with all settings. REWARDs and flags on the command line override it."
)
@click.option("--params", "-p", multiple=True, metavar="KEY=VALUE", help="A param of every REWARD. Repeatable.")
@click.option("--host", help="The address to listen on. [default: 127.0.0.1, which only this machine reaches]")
@click.option("--port", type=click.IntRange(0, 65_535), help="The port; 0 takes a free one. [default: 8000]")
@click.option("--workers", type=click.IntRange(1, 10_000), help="Processes that judge. [default: one per core]")
@click.option("--concurrency", type=click.IntRange(1, MOST), help="Calls of an asynchronous reward at a time.")
@click.option("--timeout", type=_SECONDS, help="Seconds that one call of the reward may take.")
@click.option(
    "--dialect", "dialects", multiple=True, help="A dialect to offer besides `generic`. Repeatable. [default: all]"
)
@click.option("--environment", metavar="PATH", help="Worlds to step through: /reset, /step, /state and /ws.")
@click.option("--judged-by", metavar="NAME", help="The served reward that judges their episodes. [default: none]")
@click.option("--api-key-env", "api_key_envs", multiple=True, metavar="NAME", help="A variable with API keys.")
@click.option("--api-key-file", "api_key_files", multiple=True, type=_FILE, help="A file with API keys, a line each.")
@click.option("--key-rate", type=_SECONDS, help="Answers per second of one caller.")
@click.option("--key-concurrency", type=click.IntRange(1, MOST), help="Requests of one caller in flight.")
@click.option("--tls-cert", type=_FILE, help="The server's certificate, with its chain.")
@click.option("--tls-key", type=_FILE, help="Its private key.")
@click.option("--client-ca", type=_FILE, help="Ask callers for a certificate signed by one of these authorities.")
@click.option(
    "--allow-client",
    "allow_clients",
    multiple=True,
    metavar="SAN",
    help="A name that the caller's certificate must have.",
)
@click.option("--google-audience", metavar="URL", help="Accept Google ID tokens that were made for this audience.")
@click.option(
    "--allow-email", "allow_emails", multiple=True, metavar="ADDRESS", help="An account whose tokens are accepted."
)
@click.option("--behind", type=click.Choice(["aws-iam", "google-iam"]), help="The platform in front checks callers.")
@click.option("--insecure", is_flag=True, help="Let anybody call who can reach the port.")
@click.option(
    "--queue",
    type=click.IntRange(1, MOST),
    help="How many answers may wait. When more arrive, the server replies 503. [default: 4096]",
)
@click.option("--max-body-mb", type=_SECONDS, help="Megabytes of one request. [default: 16]")
@click.option(
    "--drain-seconds",
    type=FiniteRange(min=0),
    help="Seconds to wait at the end for requests that are not finished. [default: 30]",
)
@click.option("--access-log", metavar="FILE", help="A line of JSON per request; - is standard error, none is no log.")
def serve(rewards: tuple[str, ...], config: Path | None, params: tuple[str, ...], **given: Any) -> None:
    """Serve rewards over HTTP until Ctrl-C or SIGTERM. Requests that were accepted before are still answered.

    A REWARD is an import path, a file, or a name that `reward-kit rewards list` shows; NAME=PATH serves it under
    /rewards/NAME. The first one also answers at /evaluate. POST /evaluate takes {"messages": [...], "ground_truth":
    ...}, POST /evaluate/batch {"items": [...]}; trainers speak their own dialects. GET /openapi.json has all of it.

    On 127.0.0.1 anybody on this machine may call. On other addresses callers need an API key, a Google ID token or a
    certificate, or the server does not start.

    \b
    reward-kit serve math
    reward-kit serve my_rewards.py:correct style=my_rewards.py:style -p strict=true --workers 8
    reward-kit serve math --host 0.0.0.0 --api-key-file keys.txt --tls-cert cert.pem --tls-key key.pem
    reward-kit serve --config serve.yaml
    """
    from reward_kit.serving.app import build_app
    from reward_kit.serving.run import run_app

    name_settings(_door().spell)
    app = build_app(_settings(rewards, config, params, given))
    run_app(app, lambda address: _announce(app, address))


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_PLACES = {
    "environment": ("worlds", "environment"), "judged_by": ("worlds", "reward"),
    "host": ("host",), "port": ("port",), "dialects": ("dialects",), "access_log": ("access_log",),
    "api_key_envs": ("access", "api_key_envs"), "api_key_files": ("access", "api_key_files"),
    "key_rate": ("access", "rate"), "key_concurrency": ("access", "concurrency"),
    "google_audience": ("access", "google_audience"), "allow_emails": ("access", "allow_emails"),
    "behind": ("access", "behind"), "insecure": ("access", "insecure"),
    "tls_cert": ("tls", "cert"), "tls_key": ("tls", "key"), "client_ca": ("tls", "client_ca"),
    "allow_clients": ("tls", "allow_clients"),
    "queue": ("limits", "queue"), "max_body_mb": ("limits", "body_mb"), "drain_seconds": ("limits", "drain_seconds"),
}  # fmt: skip
"""Where in the settings each flag belongs."""


def _door() -> Door:
    """How messages name the settings of a server here."""
    flags = {option.opts[0]: ".".join(_PLACES[option.name]) for option in serve.params if option.name in _PLACES}
    return Door(flags, words={"access.insecure=true": "`--insecure`"})


def _settings(
    rewards: tuple[str, ...], config: Path | None, params: tuple[str, ...], given: dict[str, Any]
) -> ServeSettings:
    from reward_kit.config_models import validated
    from reward_kit.serving.settings import ServeSettings, settings_from_file

    raw: dict[str, Any] = {}
    if config is not None:
        raw = settings_from_file(config).model_dump(exclude_unset=True)
    elif not rewards:
        raise click.UsageError("There is nothing to serve. Name a REWARD, such as math or my_rewards.py:correct.")
    for flag, value in given.items():
        if flag in _PLACES and value is not None and value is not False and value != ():
            _put(raw, _PLACES[flag], list(value) if isinstance(value, tuple) else value)
    if raw.get("access_log") == "none":
        raw["access_log"] = None
    if rewards:
        raw["rewards"] = _rewards(rewards, _params(params), given)
    elif params or given["workers"] or given["timeout"] or given["concurrency"]:
        raise click.UsageError("--params, --workers, --concurrency and --timeout are about REWARDs: name them, or put "
                               "this into the file.")  # fmt: skip
    return validated(ServeSettings, raw, "What the server is told")


def _put(raw: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    *parts, last = place
    for part in parts:
        raw = raw.setdefault(part, {})
    raw[last] = value


def _rewards(rewards: tuple[str, ...], params: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    bounds = {name: given[name] for name in ("workers", "timeout", "concurrency") if given[name] is not None}
    found: dict[str, Any] = {}
    for reward in rewards:
        name, path = _named(reward)
        if name in found:
            raise click.UsageError(f"Two rewards are called {name!r}. Name them: {name}=… and another=….")
        found[name] = {"function_path": path, "params": params, **bounds}
    return found


def _named(reward: str) -> tuple[str, str]:
    """The name that a reward is served under, and its path; without a name, the path's last part."""
    name, equals, path = reward.partition("=")
    if equals:
        return name, path
    return reward.rpartition(":")[2].rpartition(".")[2].replace("/", "-"), reward


def _params(params: tuple[str, ...]) -> dict[str, Any]:
    from reward_kit.cli_commands.options import key_value_pairs
    from reward_kit.utils.strict_yaml import load_yaml

    pairs = key_value_pairs(params, "--params", "KEY=VALUE, such as strict=true")
    return {key: load_yaml(value, f"--params {key}") for key, value in pairs.items()}


# ── what is said at the start ────────────────────────────────────────────────────────────────────────────────────────


def _announce(app: RewardApp, address: str) -> None:
    settings = app.settings
    echo(f"Serving at {address}")
    for number, (name, reward) in enumerate(settings.rewards.items()):
        also = " and at /evaluate" if number == 0 else ""
        echo(f"  {name}: {reward.function_path}, at /rewards/{name}/evaluate{also}")
    echo(f"Dialects: {', '.join(dialect.name for dialect in app.dialects)}. All paths: {address}/openapi.json")
    echo(f"Who may call: {_who(app)}.")
    echo("Try it:")
    echo(f"  {_curl(app, address)}")
    echo("Ctrl-C or SIGTERM ends the server. Requests that were accepted are still answered.")


def _who(app: RewardApp) -> str:
    settings, access = app.settings, app.settings.access
    ways: list[str] = []
    if app.gate.keys is not None:
        ways.append(f"anybody who has one of the API keys {', '.join(app.gate.keys.ids)}")
    if access.google_audience:
        ways.append(f"Google ID tokens of {', '.join(access.allow_emails)}")
    who = " or ".join(ways)
    if settings.tls.client_ca:
        named = f" with one of the names {', '.join(settings.tls.allow_clients)}" if settings.tls.allow_clients else ""
        who = f"clients with a certificate{named}" + (f", and of these {who}" if who else "")
    if who:
        return who
    if access.behind:
        return f"those whom the platform in front lets through ({access.behind})"
    return "ANYBODY who can reach this address (--insecure)" if access.insecure else "anybody on this machine"


_EXAMPLE = (
    '{"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}], "ground_truth": "2"}'
)


def _curl(app: RewardApp, address: str) -> str:
    tls = app.settings.tls
    flags = [f"--cacert {tls.cert}"] if tls.cert else []
    if tls.client_ca:
        flags.append("--cert CLIENT.pem --key CLIENT.key")
    if app.gate.keys is not None:
        flags.append('-H "X-Api-Key: $KEY"')
    elif app.settings.access.google_audience:
        flags.append('-H "Authorization: Bearer $TOKEN"')
    return " ".join(["curl", *flags, f"{address}/evaluate", f"-d '{_EXAMPLE}'"])
