"""Speed of the models, as ratios measured in one run."""
