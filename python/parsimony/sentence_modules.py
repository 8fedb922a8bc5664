"""Directories of sentence-transformers: a transformer, in the directory or a folder of it, and modules
that read its embeddings, each in a folder."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, Dict, List, Optional

from .errors import FileError, UnsupportedError

_MODULES = "modules.json"
_CONFIG = "config.json"


class SentenceModules:
    """The modules beside a transformer; there are none where the directory has no `modules.json`.

    Attributes:
        transformer: the folder of the transformer.
        fixed: the first other module that has weights, which are for embeddings of one size.

    Raises:
        FileError: a file cannot be read.
        UnsupportedError: none of the modules is a transformer.
    """

    def __init__(self, directory: Path) -> None:
        self._root, self.transformer = directory, directory
        self._others: List[Path] = []
        self.fixed: Optional[str] = None
        if not (directory / _MODULES).exists():
            return
        folders = [directory / place for place in _places(directory / _MODULES)]
        found = [one for one in folders if "architectures" in read_json(one / _CONFIG, {})]
        if not found:
            raise UnsupportedError(
                f"{directory / _MODULES}: none of the modules has a {_CONFIG} that names a class"
            )
        self.transformer = found[0]
        self._others = [one for one in folders if one not in (found[0], directory)]
        for folder in self._others:
            if any(file.suffix in (".safetensors", ".bin") for file in folder.glob("*")):
                self.fixed = self.fixed or folder.name

    @property
    def nested(self) -> bool:
        """Whether the transformer lies in a folder of the directory."""
        return self.transformer != self._root

    def placed_in(self, directory: Path) -> Path:
        """Returns the transformer's folder in another directory of the same modules."""
        return directory / self.transformer.relative_to(self._root)

    def texts(self, before: int, after: int) -> Dict[str, str]:
        """Returns the texts of the other modules' files with another size of embeddings, by names in
        the directory."""
        size = re.compile(rf'("[^"]*dim[^"]*"\s*:\s*){before}\b')
        found = {}
        for file in (folder / _CONFIG for folder in self._others):
            text = file.read_text(encoding="utf-8") if file.exists() else ""
            changed = size.sub(rf"\g<1>{after}", text)
            if changed != text:
                found[file.relative_to(self._root).as_posix()] = changed
        return found

    def around(self, small: Path, texts: Dict[str, str]) -> Path:
        """Returns a directory with the small transformer in its place, beside `small`; all else is
        copied, but for these texts."""
        if not self.nested:
            return small
        whole = small.parent / "whole"

        def without(folder: str, names: List[str]) -> List[str]:
            return [name for name in names if Path(folder, name) == self.transformer]

        shutil.copytree(self._root, whole, ignore=without)
        small.rename(whole / self.transformer.relative_to(self._root))
        for name, text in texts.items():
            (whole / name).write_text(text, encoding="utf-8")
        return whole


def _places(file: Path) -> List[str]:
    try:
        places = [str(module["path"]) for module in read_json(file, [])]
    except (KeyError, TypeError) as error:
        raise FileError(f"{file}: not a list of modules with paths") from error
    for place in places:
        if Path(place).is_absolute() or ".." in Path(place).parts:
            raise FileError(f"{file}: found the path {place!r}, expected one within the directory")
    return places


def read_json(file: Path, missing: Any) -> Any:
    """Returns the content of a file of JSON; `missing` if there is none.

    Raises:
        FileError: the file cannot be read.
    """
    try:
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else missing
    except (OSError, ValueError) as error:
        raise FileError(f"{file}: {error}") from error
