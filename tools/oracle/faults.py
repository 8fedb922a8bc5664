"""The faults that are told apart by an exit code."""

import sys
import traceback

FINE, FAILED, USAGE, UNSUPPORTED, FILE, BUG = 0, 1, 2, 3, 4, 70


class UsageFault(Exception):
    """The command line asks for what cannot be."""


class Refusal(Exception):
    """ONNX Runtime cannot run this model, or not on these inputs."""


class FileFault(Exception):
    """A file is not what it has to be."""


ANY = (UsageFault, Refusal, FileFault, OSError)


def exit_code(program, run):
    """Runs a command; what went wrong is printed."""
    try:
        return run()
    except ANY as fault:
        print(f"{program}: {fault}", file=sys.stderr)
        codes = {UsageFault: USAGE, Refusal: UNSUPPORTED}
        return codes.get(type(fault), FILE)
    except Exception:
        traceback.print_exc()
        return BUG
