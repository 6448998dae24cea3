# SPDX-License-Identifier: Apache-2.0
"""The tool calls in an answer, in every common format: `formats.read_calls`, with the `tools` that were offered."""
