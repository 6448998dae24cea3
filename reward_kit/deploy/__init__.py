# SPDX-License-Identifier: Apache-2.0
"""A reward brought to where others can call it: this machine, a container, Cloud Run, Lambda.

    a reward ──bundle──▶ files that never change for the same source
       │
       ▼  targets/          what to do, as data: steps of files, commands and requests
    Plan ──shown──▶ `--dry-run`
       │
       ▼  carry_out         one step at a time, each noted on disk before and after
    the state file ──▶ status, logs, delete

Nothing is done that the plan does not show, and nothing is deleted that the state file does not name.
"""
