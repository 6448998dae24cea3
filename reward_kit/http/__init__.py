# SPDX-License-Identifier: Apache-2.0
"""The one way out: no redirect is followed, replies are bounded, secrets masked, one policy of trying again."""
