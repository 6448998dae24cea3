# SPDX-License-Identifier: Apache-2.0
"""`reward-kit completion`: the script that lets a shell complete commands, options, files, keys and rewards."""

from __future__ import annotations

import click

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes the Tab key complete reward-kit's commands in SHELL.

    It completes commands and options, files, the keys of a config with their values (`reward-kit run conf.yaml
    generation.mod<Tab>`), and the names of rewards. Add one of these lines to the start file of your shell:

    \b
    eval "$(reward-kit completion bash)"                          in ~/.bashrc (bash 4.4 or newer)
    eval "$(reward-kit completion zsh)"                           in ~/.zshrc, after compinit
    reward-kit completion fish | source                           in ~/.config/fish/config.fish
    """
    from reward_kit.cli_commands.completion import script_of

    click.echo(script_of(shell, context.find_root().command), nl=False)
