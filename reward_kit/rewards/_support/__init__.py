# SPDX-License-Identifier: Apache-2.0
"""What several rewards share: checked parameters, verdicts in the same words, prose, references, schemas, languages."""
