# SPDX-License-Identifier: Apache-2.0
"""Object stores: `s3://`, `gs://`, `hf://`, `memory://` and whatever else fsspec knows, read and written as files."""
