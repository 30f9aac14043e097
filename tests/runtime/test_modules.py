"""A module of a user registers its policies."""

import sys
from pathlib import Path

import pytest

from headgate.errors import ConfigRefused
from headgate.policies import policy_named
from headgate.runtime import load_module

TEXT = """import headgate as hg

@hg.priority("{name}", changes="queue")
def longest_queue(unit, now_s):
    return float(unit.pending)
"""


def test_a_file_makes_its_policy_known(tmp_path: Path) -> None:
    file = tmp_path / "policies_of_a_file.py"
    file.write_text(TEXT.format(name="of-a-file"))
    load_module(str(file))
    assert policy_named("of-a-file").name == "of-a-file"


def test_a_module_in_the_working_directory_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policies_by_name.py").write_text(TEXT.format(name="by-name"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    load_module("policies_by_name")
    assert policy_named("by-name").name == "by-name"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module", "there is none of that name"),
        ("no_such_file.py", "there is none of that name"),
    ],
)
def test_a_missing_module_is_a_sentence(name: str, message: str) -> None:
    with pytest.raises(ConfigRefused, match=message):
        load_module(name)


def test_a_module_that_fails_says_how(tmp_path: Path) -> None:
    file = tmp_path / "broken_policies.py"
    file.write_text("1 / 0\n")
    with pytest.raises(ConfigRefused, match="ZeroDivisionError: division by zero"):
        load_module(str(file))
    assert "broken_policies" not in sys.modules
