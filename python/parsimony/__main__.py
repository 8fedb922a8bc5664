"""`python3 -m parsimony` is the command `parsimony`."""

import os
import sys

from .command import find_command
from .errors import Error


def main() -> None:
    """Replaces this process by the command."""
    try:
        command = find_command()
    except Error as error:
        sys.exit(f"parsimony: {error}")
    os.execv(command, [command, *sys.argv[1:]])


if __name__ == "__main__":
    main()
