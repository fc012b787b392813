"""Say in words what the system refused: a file and what is wrong with it."""

from __future__ import annotations


def os_words(error: OSError) -> str:
    """Return `notes.mlir: no such file or directory`, where Python has `[Errno 2] No such ...: 'notes.mlir'`."""
    if not error.strerror:
        return str(error) or type(error).__name__
    files = [str(file) for file in (error.filename, error.filename2) if file is not None]
    words = error.strerror[0].lower() + error.strerror[1:]
    return f"{' -> '.join(files)}: {words}" if files else words
