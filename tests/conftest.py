"""Property tests draw the same cases every time: a failure seen once can be had again."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")
