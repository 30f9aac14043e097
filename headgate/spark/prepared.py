"""Code that Spark has made for queries that run as one."""

import threading

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.model.plan import Lane
from headgate.spark.arrangement import Part
from headgate.spark.constants import ConstantsGroup
from headgate.spark.group import Group
from headgate.spark.lanes import Lanes
from headgate.spark.projection import NotPlain, Projection


class Prepared:
    """A group with Spark's code for it, made when it is first wanted, and what its calls cost."""

    def __init__(
        self,
        part: Part,
        group: Group | ConstantsGroup,
        schema: StructType,
        lane: Lane | None = None,
    ) -> None:
        self.part, self.group, self.lanes = part, group, Lanes.new(lane)
        self._schema = schema
        self._projection: Projection | None = None
        self._turn = threading.Lock()

    def projection(self, session: SparkSession) -> Projection | None:
        """Gives the code; None where nothing is computed, or a row does not suffice for it."""
        with self._turn:
            if self._projection is None and self.lanes.driver_can and self.group.items:
                try:
                    self._projection = Projection(session, self.group.items, self._schema)
                except NotPlain:
                    self.lanes.driver_can = False
            return self._projection

    def renew(self) -> None:
        """Has the code made anew: a call that was given up may hold the old one for ever."""
        self._projection = None
