"""The console command ``bridge-opt``."""

import os
import sys


def main() -> None:
    """Replace this process with the bridge-opt binary."""
    binary = os.path.join(os.path.dirname(__file__), "bin", "bridge-opt")
    os.execv(binary, [binary, *sys.argv[1:]])


if __name__ == "__main__":
    main()
