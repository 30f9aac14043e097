"""The pipeline file as a run uses it: its values, those of the environment, and flags."""

from collections.abc import Mapping
from pathlib import Path as File
from typing import Any

from pydantic import ValidationError

from headgate.config.pipeline import Pipeline
from headgate.config.refusals import refusal_of, refuse_queries, refuse_taken_names
from headgate.config.yaml_file import read_mapping


def read_pipeline(
    path: str | File, environment: Mapping[str, str] | None = None, **flags: Any
) -> Pipeline:
    """Read and check a pipeline file. Relative directories are relative to the working directory.

    A value comes from the defaults, the file, the environment (`HEADGATE_STATE` for `state`) or a
    flag; the last of these that has the value wins.

    Raises:
        ConfigRefused: the file is missing, is not YAML, or a value is wrong.
    """
    data = read_mapping(path)
    outside = {} if environment is None else environment
    changes = {
        key: outside[variable]
        for key in Pipeline.model_fields
        if (variable := f"HEADGATE_{key.upper()}") in outside
        and key not in ("streams", "views", "queries")
    }
    try:
        pipeline = Pipeline.model_validate({**data, **changes, **flags})
    except ValidationError as error:
        places = {
            **{key: ("the environment", f"HEADGATE_{key.upper()}") for key in changes},
            **{key: ("the command line", f"--{key}") for key in flags},
        }
        raise refusal_of(str(path), error, places, Pipeline) from error
    refuse_taken_names(str(path), pipeline.streams, pipeline.views, pipeline.queries)
    refuse_queries(str(path), pipeline.queries, pipeline.classes)
    pipeline.origins.update(dict.fromkeys(data, str(path)))
    pipeline.origins.update({key: f"HEADGATE_{key.upper()}" for key in changes})
    pipeline.origins.update(dict.fromkeys(flags, "flag"))
    return pipeline
