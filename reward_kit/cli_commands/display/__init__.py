# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a command: its plan, its progress and its figures. One module per command that shows much."""
