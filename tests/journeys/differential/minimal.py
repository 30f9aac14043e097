"""Shorter texts that show the same difference."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from differential.batch import AnsweredQuestion, Finding, answered, check
from differential.oracle import Oracle
from differential.tree import Tree
from differential.world import World

ROUNDS, CANDIDATES = 6, 40


def minimal(
    world: World, finding: Finding, batch: Sequence[AnsweredQuestion], folder: Path
) -> Finding:
    """Return a finding with the shortest text that shows it.

    If the text agrees when it runs alone, add the smallest group of texts with which it differs.
    """
    oracle = Oracle(world)
    if not _shows(world, finding, [finding], folder):
        return replace(finding, minimal=_company(world, finding, batch, folder))
    best = finding
    for _ in range(ROUNDS):
        shorter = _shorter(world, oracle, best, folder)
        if shorter is None:
            break
        best = shorter
    return replace(finding, minimal=best.case.sql, detail=best.detail)


def _shows(world: World, finding: Finding, company: Sequence[Finding], folder: Path) -> bool:
    oracle = Oracle(world)
    questions = [
        question
        for number, other in enumerate(company)
        if (question := answered(oracle, f"m{number}", other.case)) is not None
    ]
    findings, _ = check(world, questions, [finding.way], folder)
    return any(other.case is finding.case and other.what == finding.what for other in findings)


def _company(
    world: World, finding: Finding, batch: Sequence[AnsweredQuestion], folder: Path
) -> str:
    """Return the text with the other texts that it needs to differ; find them by halving."""
    others = [
        replace(finding, case=question.case)
        for question in batch
        if question.case is not finding.case
    ]
    while len(others) > 1:
        half = len(others) // 2
        for part in (others[:half], others[half:]):
            if _shows(world, finding, [finding, *part], folder):
                others = part
                break
        else:
            break
    if not _shows(world, finding, [finding, *others], folder):
        return f"{finding.case.sql} (not seen again)"
    return "; ".join(other.case.sql for other in (finding, *others[:4]))


def _shorter(world: World, oracle: Oracle, finding: Finding, folder: Path) -> Finding | None:
    """Return a finding with a shorter text, the shortest of some candidates."""
    tree = finding.case.tree
    candidates = {
        smaller.text: smaller for smaller in _smaller(tree) if len(smaller.text) < len(tree.text)
    }
    ordered = sorted(candidates.values(), key=lambda smaller: len(smaller.text))
    questions: list[AnsweredQuestion] = []
    for smaller in ordered:
        question = answered(oracle, f"m{len(questions)}", finding.case.with_tree(smaller))
        if question is not None and (question.answer is None) == (
            finding.what == "answers where batch fails"
        ):
            questions.append(question)
        if len(questions) == CANDIDATES:
            break
    way = (finding.way[0], "none") if finding.way[1] == "class" else finding.way
    findings, _ = check(world, questions, [way], folder)
    alike = [other for other in findings if other.what == finding.what]
    if not alike:
        return None
    best = min(alike, key=lambda other: len(other.case.sql))
    return replace(finding, case=best.case, detail=best.detail)


def _smaller(tree: Tree) -> Iterator[Tree]:
    """Yield texts in which a part is dropped or replaced by a smaller part of itself."""
    for node in tree.nodes():
        if node.optional:
            yield tree.replaced(node, "")
        separators = [part for part in node.parts if part == ", "]
        if separators and len(node.parts) == 2 * len(separators) + 1:
            for place in range(0, len(node.parts), 2):
                parts = list(node.parts)
                del parts[max(0, place - 1) : max(0, place - 1) + 2]
                yield tree.replaced(node, Tree(tuple(parts)))
        if node.kind:
            for inner in node.nodes():
                if inner is not node and inner.kind:
                    yield tree.replaced(node, inner)
