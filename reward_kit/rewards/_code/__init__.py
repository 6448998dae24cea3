# SPDX-License-Identifier: Apache-2.0
"""What the code rewards share: finding the code in an answer, reading tests, running both apart, comparing."""
