"""One training step of models against plain formulations of the same mathematics."""
