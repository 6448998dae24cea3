# SPDX-License-Identifier: Apache-2.0
"""The engine: the two stages, what each still has to do, and the pipeline that joins them."""
