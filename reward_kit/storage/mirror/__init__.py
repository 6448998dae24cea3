# SPDX-License-Identifier: Apache-2.0
"""A copy of a run directory in an object store, made while the run goes on, from which another machine can go on.

    s3://bucket/runs/one/
      mirror.json                  who writes here: generation, owner, a beat that tells whether he still does
      mirror/000002.json           what there is: of each file its parts, with lengths and checksums
      mirror/parts/rollouts.jsonl/000000000000-000000081920-5f3a…   bytes of a file; never changed once written
      rollouts.jsonl  results.jsonl  summary.json …   the files themselves, whole, when the run is finished

The order in which objects are written is what makes this safe: parts first, then the list of them, and only then is
anything deleted that no list names. Whoever reads the list therefore finds all it names, however a writer ended.
"""
