# SPDX-License-Identifier: Apache-2.0
"""The web page over run directories, experiments and shell tasks: what `reward-kit view` and `report` show."""
