# SPDX-License-Identifier: Apache-2.0
"""A model's verdict: what it is asked, how its reply is read, and how several replies become one verdict."""
