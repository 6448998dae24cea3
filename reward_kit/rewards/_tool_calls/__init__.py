# SPDX-License-Identifier: Apache-2.0
"""Tool calls, compared with the calls that were expected.

message ─ answers.tool_calls.formats ─▶ FoundCalls ─┐
ground truth ─ expected_calls ─▶ ExpectedCall ──────┼─ agreement ─▶ Agreement  (bfcl_rules: as BFCL compares)
tools ─ answers.tool_calls.tools ─▶ Tools ──────────┘
"""
