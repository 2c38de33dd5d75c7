"""lockstep: data-parallel training across ordinary machines. One program; no Python at run time.

This package carries it for `pip install`; docs/install.md says what is in it.
"""
