"""A YAML loader with limits on nesting and aliases, so that no file keeps it busy forever."""

from typing import Any

import yaml

TEXT_BYTES = 16 << 20

NESTING = 50
"""A pipeline file has up to seven levels."""

NODES = 500_000
"""Most keys, values and collections, where an alias counts as all that it stands for. Nine lines,
each a list of nine aliases of the line above, would otherwise stand for a thousand million."""


class LimitedLoader(yaml.SafeLoader):
    """A safe loader that refuses texts of more nodes or levels than any pipeline needs."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._nodes = self._level = 0
        self._nodes_of: dict[int, int] = {}
        """By id of a node, how many nodes it stands for; not yet for those around the present."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node, and count it and those in it."""
        parser: Any = self  # the stubs have no types for its methods
        mark, is_alias = parser.peek_event().start_mark, parser.check_event(yaml.AliasEvent)
        before, self._level = self._nodes, self._level + 1
        if self._level > NESTING:
            raise _refused(f"it has more than {NESTING} levels", mark)
        node = super().compose_node(parent, index)
        if is_alias and id(node) not in self._nodes_of:
            raise _refused("an alias stands inside what it stands for", mark)
        self._nodes += self._nodes_of[id(node)] if is_alias else 1
        if self._nodes > NODES:
            raise _refused(f"it has more than {NODES} values, those of aliases included", mark)
        self._level -= 1
        if not is_alias:
            self._nodes_of[id(node)] = self._nodes - before
        return node


def _refused(problem: str, mark: yaml.Mark) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
