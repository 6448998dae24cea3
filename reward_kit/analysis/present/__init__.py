# SPDX-License-Identifier: Apache-2.0
"""How figures are shown: tables, sentences, files, pictures. Nothing here computes a figure."""
