# SPDX-License-Identifier: Apache-2.0
"""What a model's text says: its final answer, its code, its commands and tool calls, after what it thought aloud."""
