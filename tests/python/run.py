"""Cross-checks of the program against other people's readers of GGUF and safetensors.

    python run.py PROGRAM MODEL.gguf|GOLDEN...

`cargo xtask test` calls it. A folder of golden vectors stands for containers made of them, with all types that
the others know. A model is opened with gguf.GGUFReader once, since that takes seconds for a large vocabulary.
"""

import os
import sys
import tempfile
import time

from gguf import GGUFReader

import check_convert
import check_decode
import check_inspect
import containers


def check(program: str, model: str) -> int:
    """Runs all checks on a model and gives how many failed."""
    failed = 0
    start = time.monotonic()
    reader = GGUFReader(model)
    for check in (check_inspect, check_convert, check_decode):
        name = f"{check.__name__} {os.path.basename(model)}"
        try:
            told = check.check(program, model, reader)
        except AssertionError as difference:
            failed += 1
            print(f"FAILED {name}: {difference}", flush=True)
        else:
            print(f"ok {name}: {told} ({time.monotonic() - start:.1f} s)", flush=True)
        start = time.monotonic()
    return failed


def main(program: str, models: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        failed = 0
        for model in models:
            made = containers.write(model, folder) if os.path.isdir(model) else [model]
            failed += sum(check(program, path) for path in made)
        return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
