"""The command line: one small module per verb, no logic.

Verbs import torch and the rest of the package inside their functions, so that ``--help`` does not wait for them.
"""
