"""The pipeline file: its model, and errors that name the file, the key and the expected value.

In: a YAML file, the environment, flags; or a fragment for a Headgate that runs.
Out: a checked `Pipeline`, from which come streams, queries and settings.
Never opens a source, a sink or Spark.
"""

from headgate.config.fragment import change_of, fragment_of
from headgate.config.keywords import settings_of, show_settings
from headgate.config.mistakes import Mistake, Mistakes
from headgate.config.pipeline import ClassConfig, Pipeline, PolicyConfig, SparkConfig
from headgate.config.pipeline_file import examine, read_pipeline
from headgate.config.query import QueryConfig, SinkConfig, StatisticsConfig, ValueConfig, ViewConfig
from headgate.config.simulation import SimulationConfig, simulation_section
from headgate.config.start_position import since_of
from headgate.config.stream import ArrivalsConfig, StreamConfig
from headgate.config.validation import Validation
from headgate.config.yaml_file import read_mapping
from headgate.model.settings import LogFormat

__all__ = [
    "ArrivalsConfig",
    "ClassConfig",
    "LogFormat",
    "Mistake",
    "Mistakes",
    "Pipeline",
    "PolicyConfig",
    "QueryConfig",
    "SimulationConfig",
    "SinkConfig",
    "SparkConfig",
    "StatisticsConfig",
    "StreamConfig",
    "Validation",
    "ValueConfig",
    "ViewConfig",
    "change_of",
    "examine",
    "fragment_of",
    "read_mapping",
    "read_pipeline",
    "settings_of",
    "show_settings",
    "simulation_section",
    "since_of",
]
