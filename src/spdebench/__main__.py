"""``python -m spdebench``."""

from spdebench.cli.main import main

if __name__ == "__main__":
    main()
