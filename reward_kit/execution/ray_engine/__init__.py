# SPDX-License-Identifier: Apache-2.0
"""The engine on a Ray cluster: the stages here, plays and rewards on actors. Nothing outside this room knows Ray.

driver (this process)                                            actors (anywhere)
─────────────────────                                            ─────────────────
WorkQueue ─▶ generate ─▶ RemotePlay ═══ packs of samples ═══════▶ GenerateActor: the client in its layers, the play
                │            ▲  ◀══════ packs of rollouts ══════
                ▼            │
         rollouts.jsonl      └─ Services: cache, turns of episodes, money, rates ◀═ calls, in the same packs
                ▼
Handover  ─▶  score   ─▶ RemoteScorer ══ packs of rollouts ══════▶ ScoreActor: the rewards, workers, sandboxes
                │            ▲  ◀══════ packs of verdicts ══════
                ▼
         results.jsonl

engine.py      what the pipeline drives          cluster.py    starting, attaching and ending Ray
crew.py        the driver's side of actors       stations.py   the actors
services.py    what actors ask the driver for    mailbox.py    how an actor talks with the driver
leases.py      limits that hold for all          wire.py       values as bytes
order.py       what an actor is told first, and how secrets get there
"""
