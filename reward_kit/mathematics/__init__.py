r"""Whether two answers mean the same: `equivalence.equivalent(gold, answer)`.

text ─reading─▶ plain text ─tokens─▶ tokens ─parser─▶ nodes ─comparison─▶ True, False or None
                    │                                          │
                    └─ plain_numbers: most answers end here    ├─ identity: values at random points, 60 digits
                                                               ├─ real_sets: intervals, inequalities, set builders
                                                               └─ last_resort: math-verify in a process of its own
"""
