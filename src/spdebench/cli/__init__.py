"""The command line: one module per command, with its options and its output as text or JSON.

Commands import torch and the rest of the package inside their functions, so that ``--help`` does not wait for them.
"""
