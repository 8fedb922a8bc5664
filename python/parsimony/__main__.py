"""`python3 -m parsimony` is the command `parsimony`."""

import os
import sys

from .command import command_environment, find_command
from .errors import Error


def main() -> None:
    """Replaces this process by the command."""
    try:
        command = find_command()
    except Error as error:
        sys.exit(f"parsimony: {error}")
    os.execve(command, [command, *sys.argv[1:]], command_environment())


if __name__ == "__main__":
    main()
