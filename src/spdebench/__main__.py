"""The process of the command ``spdebench`` or ``python -m spdebench``; it may be interrupted from its first moment."""

import sys

from spdebench import interrupts


def main() -> None:
    """Run the command line of this process."""
    try:
        interrupts.install()
        from spdebench.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted before anything was done\n")
        sys.exit(interrupts.exit_code())
    run()


if __name__ == "__main__":
    main()
