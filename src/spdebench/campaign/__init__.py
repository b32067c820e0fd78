"""Campaigns: which runs a table lacks, what they cost, making them, and how far they are.

A table has cells, and a cell needs runs (`spdebench.paper`). `selection` finds the cells that a user asks for. `plan`
makes a `Job` of each run: how far it is, and what is left. `needs` adds the memory and the share of a GPU that it
takes, and the order of the runs. `run` turns each job that is not done into a `Unit`, all that a worker needs, and
gives the units to an engine. In a worker `one_run` makes the run and adds its record.
"""
