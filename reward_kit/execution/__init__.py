# SPDX-License-Identifier: Apache-2.0
"""The engine: the two stages, what is still owed to each, and the pipeline that joins them."""
