# SPDX-License-Identifier: Apache-2.0
r"""Whether two answers mean the same: `equivalence.equivalent(gold, answer)`.

text ──▶ plain text ──▶ tokens ──▶ tree ──▶ True, False or None
    text           tokens     parser    comparison
     │                                   ├─ numeric: values at random points, exact or of sixty digits
     └─ numbers: most answers end here   ├─ sets: intervals, inequalities, set builders
                                         ├─ families, labels, matrices, units
                                         └─ math_verify: the last resort, in a process of its own
"""
