"""The process of the command ``spdebench`` or ``python -m spdebench``; it may be interrupted from its first moment."""

from spdebench import interrupts


def main() -> None:
    """Run the command line of this process."""
    interrupts.end_at_once()
    from spdebench.cli.main import interrupted
    from spdebench.cli.main import main as run

    try:
        try:
            interrupts.raise_interrupt()
            run()
        finally:
            interrupts.ignore()
    except KeyboardInterrupt:  # in the first or the last moment of the command, which handles all others
        interrupted()


if __name__ == "__main__":
    main()
