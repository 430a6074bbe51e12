"""Running the program, and saying what differs."""

import hashlib
import subprocess


def done(*arguments: str) -> subprocess.CompletedProcess:
    """Runs the program to its end."""
    done = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    words = " ".join(arguments[1:])
    assert done.returncode == 0, f"`{words}` ended with {done.returncode}: {done.stderr.decode(errors='replace')}"
    return done


def run(*arguments: str) -> bytes:
    """Runs the program to its end and gives what it printed."""
    return done(*arguments).stdout


def same(what: str, ours, theirs) -> None:
    assert ours == theirs, f"{what}: ours is {ours!r}, theirs {theirs!r}"


def sha256(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()
