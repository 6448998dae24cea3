# SPDX-License-Identifier: Apache-2.0
"""The reward library: one subject a module, each function decorated with `@reward_function`.

A module's rewards are those it lists in `__all__`: that alone puts them into `reward-kit rewards list`, into
docs/rewards.md and among the names that a config may use. Each says in its docstring, in this order:

    what the score means, in one sentence

    what is read, what the parameters do, what is no verdict

    Metrics: the keys of its metrics.
    Needs: extra `NAME`; program `NAME`; sandbox.          (only where something beyond the core is needed)
    Cost: how it grows with the answer, and how much that is.
    Does not detect: what it cannot see, and what can fool it.

    >>> an example that runs
"""
