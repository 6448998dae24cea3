# SPDX-License-Identifier: Apache-2.0
"""A run on disk: the journals it appends to, the directory they live in, and the tables made from them."""
