"""Tool calls: read from an answer in whatever dialect it speaks, and compared with the calls that were expected.

message ─dialects─▶ Reading(calls) ─┐
ground truth ─expected─▶ calls ─────┼─agreement─▶ Agreement   (rules: strict, lenient; bfcl_rules: as BFCL does)
tools ─offered─▶ Tools ─────────────┘
"""
