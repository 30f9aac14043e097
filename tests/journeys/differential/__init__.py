"""A differential test: generated SQL, answered by Headgate and by Spark in batch.

In: a seed. Out: differences, as data that can be printed. `world` has the streams, `generator` the
texts, `oracle` the expected answers, `trial` Headgate's answers. The oracle never calls the engine.

    PYTHONPATH=$PWD:$PWD/tests/journeys .venv/bin/python -m differential --help
"""
