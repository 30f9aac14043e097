"""The section of a simulation: its charges, its trains, and what happens during it."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from headgate.config.section import Section
from headgate.config.validation_errors import first_of, refusals_of


def _counts(value: object) -> object:
    """Read `BOX=COUNT`, or several of them, as a mapping."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        return value
    pairs = [str(text).partition("=") for text in texts]
    return {name: count for name, _, count in pairs}


def _texts(value: object) -> object:
    return [value] if isinstance(value, str) else value


Counts = Annotated[dict[str, Annotated[int, Field(ge=0)]], BeforeValidator(_counts)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Share = Annotated[float, Field(gt=0, le=1)]


class SimulationConfig(Section):
    """Charges and options of a simulation that no run on Spark has.

    A pipeline with one of them is simulated query by query, each as one box, and calls are not
    fused.
    """

    train_fraction: Share | None = Field(None, description="most of a queue that a call takes")
    train_cost_s: PositiveFloat | None = Field(
        None, description="most seconds that the tuples of a call are expected to take"
    )
    train_bytes: PositiveFloat | None = Field(None, description="most bytes of a call's tuples")
    train_spread_s: NonNegativeFloat | None = Field(
        None, description="most seconds between the arrivals of a call's first and last tuple"
    )
    storage_s: NonNegativeFloat | None = Field(
        None, description="seconds that a call, or a superbox, spends on storage"
    )
    decision_s: NonNegativeFloat | None = Field(None, description="seconds per decision")
    examine_s: NonNegativeFloat | None = Field(
        None, description="seconds per priority that a decision computes"
    )
    switch_s: NonNegativeFloat | None = Field(
        None,
        description="seconds per box of the network when a call runs another box than the last",
    )
    visit_s: NonNegativeFloat | None = Field(
        None, description="seconds per empty operator that a round robin visits"
    )
    poll_s: NonNegativeFloat | None = Field(
        None, description="seconds per poll of sources, by a class of `cqc` that has no tuples"
    )
    smoothing: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="α: the weight of new measurements, with learned statistics"
    )
    window_tuples: PositiveInt | None = Field(
        None, description="input tuples per measurement, with learned statistics"
    )
    idle_waiting: bool | None = Field(
        None, description="whether a union waits for the next tuple of an empty input"
    )
    preloaded: Counts | None = Field(
        None, description="tuples that wait at the start, by box: `BOX=COUNT`"
    )
    at: Texts | None = Field(
        None,
        description="what changes at an instant: `10 go QUERY`, `10 come QUERY`, `10 policy hnr`,"
        " `10 specification pending:minimize:1`",
    )
    shed: bool | None = Field(None, description="whether a load shedder drops tuples in overload")
    shed_period_s: PositiveFloat | None = Field(
        None, description="seconds between two decisions of the shedder"
    )
    shed_headroom: Share | None = Field(
        None, description="share of the workers' time that the shedder lets be used"
    )
    shed_patience_s: PositiveFloat | None = Field(
        None, description="seconds of pending work per worker that the shedder tolerates"
    )
    shed_by_value: bool | None = Field(
        None, description="whether the shedder drops what the first box would drop, first"
    )

    @property
    def values(self) -> dict[str, Any]:
        """The keys that are set."""
        return {key: value for key, value in self.model_dump().items() if value is not None}


def simulation_section(values: Mapping[str, Any]) -> SimulationConfig:
    """Return the section with these values.

    Raises:
        ConfigRefused: a value is wrong.
    """
    try:
        return SimulationConfig.model_validate(dict(values))
    except ValidationError as error:
        refusals = refusals_of("simulation", error, dict(values), SimulationConfig)
        raise first_of(refusals) from error
