"""The tool calls in an answer, in every common dialect."""
