# SPDX-License-Identifier: Apache-2.0
"""The documentation site: docs/ and the pages beside it, made into static HTML by Sphinx, and checked.

    python -m scripts.website             build build/site: a folder per version, `latest`, and the list of versions

`stage.py` lays the pages out as the site has them, `api.py` writes the API reference, `conf.py` is Sphinx' own
configuration, and `links.py` reads the finished HTML and names every link that leads nowhere or to another host.
"""
