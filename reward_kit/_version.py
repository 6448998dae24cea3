# SPDX-License-Identifier: Apache-2.0
"""The package's version, the one place where it is written."""

__version__ = "0.5.0"
"""Read by the build, by `reward-kit --version` and into every run's manifest."""
