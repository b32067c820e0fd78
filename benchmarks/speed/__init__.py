"""Speed as ratios measured in one run: the modules behind ``spdebench bench``."""
