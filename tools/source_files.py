"""The project's own source files: everything below the root but build folders, caches and environments."""
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def _is_source_folder(name: str) -> bool:
    return not name.startswith((".", "build")) and name != "__pycache__"


def source_files(root: Path, suffixes: set[str]) -> Iterator[Path]:
    """Yields the files with one of the suffixes, in a stable order."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(name for name in subfolders if _is_source_folder(name))
        yield from (Path(folder, name) for name in sorted(names) if Path(name).suffix in suffixes)
