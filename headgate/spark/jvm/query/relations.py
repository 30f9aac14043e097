"""The relations that queries read: streams, and streams with a window, with hidden columns."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DataType,
    DoubleType,
    LongType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headgate.model.stream import ARRIVED_AT
from headgate.model.window import (
    GIVEN,
    MARK,
    ROW,
    TIME,
    WINDOW,
    Axis,
    arrival_column,
    counted,
    seen_column,
    time_column,
)
from headgate.spark.jvm.query.plans import Plans


class Relations:
    """The streams that queries can name, and their relations in the session of `plans`.

    A relation is the same object for all queries that read it. Otherwise plans of different queries
    could not be equal.
    """

    def __init__(self, plans: Plans) -> None:
        self._plans = plans
        self.schemas: dict[str, StructType] = {}
        """The columns of each stream."""
        self.event_times: dict[str, str | None] = {}
        """The name of each stream's column with the event time."""
        self._relations: dict[tuple[str, ...], DataFrame] = {}
        self._views: dict[str, DataFrame] = {}

    def add(self, stream: str, schema: StructType, event_time: str | None) -> None:
        """Create a view for a stream, so that queries can read it by its name."""
        self.schemas[stream] = schema
        self.event_times[stream] = event_time
        relation = self.of_stream(stream, stream)
        relation.select(*_quoted(schema.names)).createOrReplaceTempView(stream)

    def drop(self, stream: str) -> None:
        """Forget a stream and drop its view."""
        self._plans.session.catalog.dropTempView(stream)
        del self.schemas[stream]

    def time_type(self, stream: str) -> DataType:
        """Return the type of a stream's event times, and so of its windows' start and end."""
        column = str(self.event_times[stream]).lower()
        types = {field.name.lower(): field.dataType for field in self.schemas[stream].fields}
        wall_clock = isinstance(types.get(column), TimestampNTZType)
        return TimestampNTZType() if wall_clock else TimestampType()

    def of_stream(self, name: str, stream: str) -> DataFrame:
        """Return a relation of some name with the columns of a stream, then the hidden columns."""
        hidden = [
            StructField(ARRIVED_AT, DoubleType()),
            StructField(TIME, LongType()),
            StructField(ROW, LongType()),
            _window_field(self.time_type(stream)),
        ]
        columns = StructType([*self.schemas[stream].fields, *hidden])
        return self._relation((name, columns.json()), columns)

    def of_input(self, number: int, stream: str, count: int, axis: Axis) -> DataFrame:
        """Return the relation of a stream with a window.

        Args:
            number: that of the window among all `count` windows of the query.
        """
        others = counted(number, count, axis)
        hidden = [
            StructField(time_column(number), LongType()),
            StructField(arrival_column(number), DoubleType()),
            *(StructField(seen_column(number, other), LongType()) for other in others),
            self._window(stream, axis),
        ]
        columns = StructType([*self.schemas[stream].fields, *hidden])
        return self._relation((f"{MARK}{number}", stream, columns.json()), columns)

    def create_views(self, streams: Mapping[int, str], axes: Sequence[Axis]) -> None:
        """Create views for the relations of a query that have a window, and for the windows.

        Args:
            streams: those of the relations, by number.
            axes: the axis of each window, by number.
        """
        for number, stream in streams.items():
            axis = axes[number]
            relation = self.of_input(number, stream, len(axes), axis)
            self._create_view(f"{MARK}{number}", relation, self.schemas[stream].names)
            view, one_window = f"{GIVEN}{number}", StructType([self._window(stream, axis)])
            relation = self._relation((view, one_window.json()), one_window)
            self._create_view(view, relation, one_window.names)

    def _create_view(self, name: str, relation: DataFrame, columns: Sequence[str]) -> None:
        """Create a view of a relation, unless it is there already from an earlier query."""
        if self._views.get(name) is not relation:
            relation.select(*_quoted(columns)).createOrReplaceTempView(name)
            self._views[name] = relation

    def _window(self, stream: str, axis: Axis) -> StructField:
        return _window_field(LongType() if axis == "rows" else self.time_type(stream))

    def _relation(self, key: tuple[str, ...], columns: StructType) -> DataFrame:
        if key not in self._relations:
            self._relations[key] = self._plans.relation(key[0], columns)
        return self._relations[key]


def _quoted(names: Sequence[str]) -> list[str]:
    return ["`" + name.replace("`", "``") + "`" for name in names]


def _window_field(kind: DataType) -> StructField:
    return StructField(WINDOW, StructType([StructField("start", kind), StructField("end", kind)]))
