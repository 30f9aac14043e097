"""The records of a world: what a queue, a stage or a result consists of, as NumPy types."""

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]

NONE = -1

SELECT, JOIN, AGGREGATE = 0, 1, 2
"""What a stage does with a tuple: filters it, matches it, or adds it to a pane."""

SETTINGS = np.dtype(
    [
        ("seed", np.int64),
        ("train_tuples", np.int64),
        ("train_fraction", np.float64),
        ("train_cost_s", np.float64),
        ("train_bytes", np.float64),
        ("train_spread_s", np.float64),
        ("storage_s", np.float64),  # per access to the storage manager; every call pays it
        ("decision_s", np.float64),  # per decision
        ("examine_s", np.float64),  # per priority computed for a decision
        ("visit_s", np.float64),  # per empty unit that the policy in charge visits
        ("switch_s", np.float64),
        ("fluid", np.bool_),
        ("foresight", np.bool_),
        ("learns", np.bool_),
        ("smoothing", np.float64),
        ("window_tuples", np.int64),
        ("drift_s", np.float64),  # interval length of the drifting selectivities
        ("shed_s", np.float64),  # epoch length of the shedder
        ("idle_waiting", np.bool_),
        ("sample_s", np.float64),
        ("keep", np.bool_),  # record every response
        ("merge_first", np.int64),  # the units of ordered unions, in `links`
        ("merge_end", np.int64),
        ("plain", np.bool_),  # see `loop/plain_loop.py`
    ],
    align=True,
)

CLOCK = np.dtype(
    [
        ("now_s", np.float64),
        ("next_arrival", np.int64),
        ("free", np.int64),  # first free entry of the pool
        ("entries", np.int64),  # entries in use
        ("forget_at", np.int64),  # entries in use at which join windows are pruned; 0 for never
        ("changed", np.int64),  # how many units are in `changed`
        ("calls", np.int64),
        ("box_calls", np.int64),
        ("decisions", np.int64),
        ("examined", np.int64),
        ("overhead_s", np.float64),
        ("storage_s", np.float64),
        ("scheduler_s", np.float64),
        ("busy_s", np.float64),
        ("outputs", np.int64),
        ("kept", np.int64),
        ("pending", np.int64),
        ("pending_max", np.int64),
        ("pending_area", np.float64),  # tuples × seconds until `met_at_s`
        ("met_at_s", np.float64),
        ("bytes", np.float64),
        ("bytes_max", np.float64),
        ("bytes_area", np.float64),  # bytes × seconds, of tuples that have left their queue
        ("shared", np.int64),  # tuples in memory; a tuple with several holders counts once
        ("shared_max", np.int64),
        ("shared_area", np.float64),  # tuples × seconds until `met_at_s`
        ("shed", np.int64),
        ("figures", np.int64),
        ("last", np.int64),  # the unit of the last call
        ("leaving", np.int64),  # results on the stack, not counted yet; see `loop/plain_loop.py`
        ("closes_at_s", np.float64),  # when the next window of an aggregate ends
        ("chosen", np.int64),  # a unit that was picked, but the arrays were too small
        ("chosen_tuples", np.int64),
        ("chosen_s", np.float64),
    ],
    align=True,
)

QUEUE = np.dtype(  # the fields that every call changes share the first cache line
    [
        ("source", np.int32),  # index of the first arrival of its stream
        ("first_stage", np.int32),
        ("stages", np.int32),
        ("active", np.bool_),
        ("running", np.bool_),
        ("touched", np.bool_),
        ("line", np.bool_),  # a plain line of selections, which takes a fast path
        ("cursor", np.int64),
        ("arrived_sum_s", np.float64),
        ("tuples_in", np.int64),
        ("busy_s", np.float64),
        ("pending_max", np.int64),
        ("pending_area", np.float64),
        ("stream", np.int64),  # the one stream that it reads through a cursor, or NONE
        ("head", np.int64),  # without a stream: the list of its entries
        ("tail", np.int64),
        ("meets_itself", np.bool_),  # one call runs both inputs of a join
        ("stale", np.bool_),  # a stage of its course has new measurements
        ("shed_value", np.bool_),
        ("slide_s", np.float64),  # how often the nearest aggregate behind it closes, or 0
        ("closing_first", np.int64),  # all aggregates over windows by time behind it, in `links`
        ("closing_end", np.int64),
        ("in_order", np.bool_),  # its tuples come in the order of their arrival
        ("course_first", np.int64),  # its way to the outputs, in `links`, for learning
        ("course_end", np.int64),
        ("random_key", np.int64),  # of its first box, to shed by value
        ("shed", np.int64),
        ("merge_first", np.int64),  # the other inputs of an ordered union, in `links`
        ("merge_end", np.int64),
        ("seen_s", np.float64),  # the latest arrival that passed this queue
    ],
    align=True,
)

STAGE = np.dtype(
    [
        ("cost_s", np.float64),
        ("selectivity", np.float64),
        ("below", np.uint64),  # a tuple passes if its draw is below this
        ("random_key", np.int64),
        ("query_first", np.int32),
        ("query_end", np.int32),
        ("fill_first", np.int32),
        ("fill_end", np.int32),
        ("kind", np.int64),
        ("box", np.int64),
        ("side", np.int64),
        ("parent", np.int64),
        ("child", np.int64),  # its first child and its next sibling, or NONE
        ("sibling", np.int64),
        ("drift", np.int64),
        ("costs", np.int64),  # index of the costs of single tuples in `floats`, or NONE
        ("fates", np.int64),  # index of their outcomes in `floats`, or NONE
        ("join", np.int64),
        ("closing", np.int64),  # the windows of an aggregate, in `closings`, or NONE
        ("closing_first", np.int64),  # those by time of all aggregates from here on, in `links`
        ("closing_end", np.int64),
        ("most_in", np.float64),  # upper bounds on input and output, per tuple of the unit
        ("most_out", np.float64),
    ],
    align=True,
)

FIGURE = np.dtype(  # the estimates of a stage, as the policy sees them
    [
        ("cost_s", np.float64),
        ("selectivity", np.float64),
        ("tuples_in", np.int64),
        ("tuples_out", np.float64),
        ("more_s", np.float64),  # cost of its tuples beyond `cost_s`
        ("fresh", np.bool_),  # updated in the present call
        ("unit_first", np.int64),  # the units whose course contains it
        ("unit_end", np.int64),
    ],
    align=True,
)

ENTRY = np.dtype(
    [
        ("next", np.int64),
        ("arrived_at_s", np.float64),
        ("ideal_at_s", np.float64),  # when it would be here if nothing else ran
        ("queued_at_s", np.float64),
        ("left_at_s", np.float64),  # when its tuple was done in the last call that took it
        ("number", np.int64),  # decides its random draws
        ("mass", np.float64),
        ("target", np.int64),
        ("owner", np.int64),  # the entry that counts the holders, or −2 − number
        ("holders", np.int64),
    ],
    align=True,
)

WINDOW = np.dtype(
    [
        ("window_s", np.float64),
        ("left_head", np.int64),
        ("left_tail", np.int64),
        ("left", np.int64),
        ("right_head", np.int64),
        ("right_tail", np.int64),
        ("right", np.int64),
        ("left_in_order", np.bool_),  # tuples come in the order of their arrival
        ("right_in_order", np.bool_),
    ],
    align=True,
)

CLOSING = np.dtype(  # the windows of an aggregate
    [
        ("range_s", np.float64),
        ("slide_s", np.float64),
        ("slide_tuples", np.int64),  # 0 for windows by time
        ("tuples", np.int64),  # taken in so far
        ("window", np.int64),  # the next window by time, and when it ends
        ("due_at_s", np.float64),
        ("first", np.int64),  # its windows, in `late_s`
        ("end", np.int64),
        ("behind_join", np.bool_),
        ("before_first", np.int64),  # the aggregates over windows by time before it, in `links`
        ("before_end", np.int64),
        ("unit_first", np.int64),  # the units that bring it tuples, in `links`
        ("unit_end", np.int64),
        ("query_first", np.int64),
        ("query_end", np.int64),
        ("fill_first", np.int64),
        ("fill_end", np.int64),
    ],
    align=True,
)

STREAM = np.dtype(
    [
        ("first", np.int64),  # index of its first arrival
        ("arrived", np.int64),
        ("reader_first", np.int64),
        ("reader_end", np.int64),
    ],
    align=True,
)

RESULT = np.dtype(
    [
        ("ideal_s", np.float64),
        ("since_s", np.float64),  # counts tuples that arrived later; ∞ while the query is absent
        ("row", np.int32),  # in the histograms
        ("query_class", np.int32),
        ("outputs", np.int64),
        ("mass", np.float64),
        ("response_sum", np.float64),
        ("response_squares", np.float64),
        ("response_max", np.float64),
        ("slowdown_sum", np.float64),
        ("slowdown_squares", np.float64),
        ("slowdown_max", np.float64),
        ("qos_sum", np.float64),
        ("qos_first", np.int64),
        ("qos_end", np.int64),
        ("stale_s", np.float64),
        ("stale_until_s", np.float64),
        ("tardy_sum", np.float64),
        ("tardy_max", np.float64),
        ("by_clock", np.bool_),  # its results arrive when windows by time end
    ],
    align=True,
)

WORKER = np.dtype(
    [
        ("unit", np.int64),
        ("ends_at_s", np.float64),
        ("ended_at_s", np.float64),
        ("call", np.int64),
        ("head", np.int64),  # the output of the call, delivered at its end
        ("tail", np.int64),
        ("tuples", np.int64),
        ("arrived_sum_s", np.float64),
        ("mass", np.float64),
        ("taken", np.int64),  # its first tuple: an entry, or an index in the stream
        ("stored", np.int64),  # new tuples in the windows of joins
        ("known_s", np.float64),
        ("known_outputs", np.float64),
    ],
    align=True,
)

SAMPLE = np.dtype(
    [
        ("seen", np.bool_),
        ("pending", np.float64),
        ("bytes", np.float64),
        ("outputs", np.int64),
        ("response_sum", np.float64),
        ("slowdown_sum", np.float64),
        ("qos_sum", np.float64),
    ],
    align=True,
)
