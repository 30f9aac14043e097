"""Print the oldest versions that pyproject.toml allows, one requirement per line, for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in (*project["dependencies"], *extras["kafka"], *extras["plots"]):
    name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)(?:,.*)?", requirement).groups()
    print(f"{name}=={version}")
