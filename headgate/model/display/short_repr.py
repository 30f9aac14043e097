"""A short `repr` for dataclasses with many fields."""

from dataclasses import fields


class ShortRepr:
    """Base of dataclasses whose `repr` shows only the fields that differ from their defaults.

    A dataclass that inherits it has `repr=False`, since its own `repr` would hide this one.
    """

    def __repr__(self) -> str:
        values = [
            f"{field.name}={value!r}"
            for field in fields(self)  # type: ignore[arg-type]  # subclasses are dataclasses
            if field.repr and (value := getattr(self, field.name)) != field.default
        ]
        return f"{type(self).__name__}({', '.join(values)})"
