"""The manifest of a results folder: the files that a reader has to open, each result once."""

import threading
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from uuid import uuid4

from headgate.access import PRIVATE, Access
from headgate.result_files import MANIFEST, manifest_names, visible
from headgate.spark.log.files import HIDDEN, flush, put, size_of

SHARE = 1 / 32
"""The share of listed files that must be new before a compaction, which writes the whole list."""


class Manifest:
    """The list of a folder's visible files. A folder with a compaction has one from then on.

    A result is added by appending a line, so a commit costs the same however many there were. A
    compaction replaces the manifest by a rename. Safe to use from several threads.
    """

    def __init__(self, folder: Path, access: Access = PRIVATE) -> None:
        self.path = folder / MANIFEST
        self._folder, self._access = folder, access
        self._lock = threading.Lock()
        self._sizes: dict[Path, dict[str, int]] | None = None
        """By folder, the names of its files with their sizes."""
        self._replaced: set[Path] = set()
        self._is_whole = True
        self._news: Counter[Path] = Counter()

    def add(self, files: Iterable[Path]) -> None:
        """Add files that have become visible, unless they are listed.

        Raises:
            OSError: the manifest cannot be written; the files are not listed then.
        """
        with self._lock:
            sizes = self._load()
            new = [file for file in files if file.name not in sizes.get(file.parent, ())]
            for file in new:
                sizes.setdefault(file.parent, {})[file.name] = _size(file)
            try:
                if new and self._is_whole and self.path.exists():
                    with open(self.path, "a", opener=self._access.opener) as manifest:
                        manifest.write("".join(f"{self._name(file)}\n" for file in new))
                elif new:
                    self._write()
            except OSError:
                self._is_whole = False  # the last line may be half written
                for file in new:
                    del sizes[file.parent][file.name]
                raise
            self._news.update(file.parent for file in new)

    def replace(self, replaced: Collection[Path], files: Iterable[Path]) -> None:
        """List files in place of those that they replace, in one step that may be repeated."""
        with self._lock:
            sizes, changes = self._load(), 0
            self._replaced.update(replaced)
            for file in replaced:
                changes += sizes.get(file.parent, {}).pop(file.name, None) is not None
            for file in files:
                changes += file.name not in sizes.setdefault(file.parent, {})
                sizes[file.parent][file.name] = _size(file)
            if changes or not self._is_whole:
                self._is_whole = False  # until it is written
                self._write()

    def grown(self, least: int) -> list[Path]:
        """Return the folders with at least `least` new files since they were last returned.

        Return none until enough of all listed files are new: a compaction writes the whole list.
        """
        with self._lock:
            listed = sum(map(len, self._load().values()))
            if self._news.total() < max(least, SHARE * listed):
                return []
            folders = [folder for folder, count in self._news.items() if count >= least]
            for folder in folders:
                del self._news[folder]
            return folders

    def files_in(self, folder: Path) -> list[tuple[Path, int]]:
        """Return the listed files of a folder and their sizes, in the order of their trains."""
        with self._lock:
            sizes = self._load().get(folder, {})
            return [(folder / name, sizes[name]) for name in sorted(sizes)]

    def _load(self) -> dict[Path, dict[str, int]]:
        """Return the listed files; a folder without a manifest begins with all of its files."""
        if self._sizes is not None and (self.path.exists() or not self._folder.exists()):
            return self._sizes
        names = manifest_names(self._folder)
        self._is_whole = names is not None and self.path.read_bytes()[-1:] in (b"", b"\n")
        sizes: dict[Path, dict[str, int]] = {}
        for name in visible(self._folder) if names is None else names:
            file = self._folder / name
            if file not in self._replaced:
                sizes.setdefault(file.parent, {})[file.name] = _size(file)
        self._sizes = sizes
        self._news = Counter({folder: len(names) for folder, names in sizes.items()})
        if not self._is_whole:
            self._write()
        return sizes

    def _write(self) -> None:
        """Replace the manifest."""
        assert self._sizes is not None
        names = (self._name(folder / name) for folder, names in self._sizes.items()
                 for name in sorted(names))  # fmt: skip
        temporary = self._folder / HIDDEN / uuid4().hex
        self._access.folder(temporary.parent)
        self._access.write(temporary, "".join(f"{name}\n" for name in names).encode())
        flush(temporary)
        put(temporary, self.path)
        flush(self._folder)
        self._is_whole = True

    def _name(self, file: Path) -> str:
        return str(file.relative_to(self._folder))


def _size(file: Path) -> int:
    """Return the bytes of a file; 0 if somebody has removed it."""
    try:
        return size_of(file)
    except FileNotFoundError:
        return 0
