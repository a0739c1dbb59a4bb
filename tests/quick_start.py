"""Loaded before any other plugin: leaves out what takes most of a test run's start.

Validating a notebook imports a checker of international web addresses, which compiles a grammar for
seconds whenever it is imported; jsonschema does without it where it is not installed.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
