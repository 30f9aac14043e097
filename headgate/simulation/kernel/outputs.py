"""Results in virtual time, compiled: response, slowdown, utility, staleness, tardiness."""

from headgate.compiled import borrowing, from_zero
from headgate.simulation.kernel.bins import bin_of
from headgate.simulation.world.pointer import World


@borrowing
def utility(world: World, first: int, end: int, latency_s: float) -> float:
    """Return the utility of a latency by a QoS graph, with (x, y) pairs at first, ..., end − 1."""
    points = world.floats
    if latency_s <= points[first]:
        return points[first + 1]
    for place in range(first + 2, end, 2):
        if latency_s < points[place]:
            share = (latency_s - points[place - 2]) / (points[place] - points[place - 2])
            return points[place - 1] + share * (points[place + 1] - points[place - 1])
    return points[end - 1]


@borrowing
def output(
    world: World, query: int, arrived_at_s: float, ideal_at_s: float, left_at_s: float, mass: float
) -> None:
    """Count a result of a query.

    Slowdown is 1 + (D_actual − D_ideal) / T, which is R / T if the tuple comes from one stream
    (Sharaf §3.4.1). An output stream is stale from the arrival of a tuple that will be output until
    its output (§4.1). The result of a window by time arrives when the window ends, so its response
    is its tardiness (§3.5). A query that shares its boxes with others does not count tuples that
    arrived before the query came or after it went.
    """
    result, clock, settings = world.results[from_zero(query)], world.clock[0], world.settings[0]
    if arrived_at_s <= result.since_s:
        return
    response_s = left_at_s - arrived_at_s
    slowdown = 1.0 + (left_at_s - ideal_at_s) / result.ideal_s
    result.outputs += 1
    result.mass += mass
    result.response_sum += response_s
    result.response_squares += response_s * response_s
    result.response_max = max(result.response_max, response_s)
    result.slowdown_sum += slowdown
    result.slowdown_squares += slowdown * slowdown
    result.slowdown_max = max(result.slowdown_max, slowdown)
    if result.by_clock:
        result.tardy_sum += response_s
        result.tardy_max = max(result.tardy_max, response_s)
    row, place = from_zero(result.row), bin_of(response_s)
    world.response_bins[row, place] += 1
    world.response_bins[-1, place] += 1  # of all queries, for `Worth.measured`
    world.slowdown_bins[row, bin_of(slowdown)] += 1
    begun_s = max(arrived_at_s, result.stale_until_s)
    if left_at_s > begun_s:
        result.stale_s += left_at_s - begun_s
        result.stale_until_s = left_at_s
    worth = 0.0
    if result.qos_end > result.qos_first:
        worth = utility(world, result.qos_first, result.qos_end, response_s)
        result.qos_sum += worth
    interval = min(int(left_at_s / settings.sample_s), len(world.samples) - 1)
    sample = world.samples[from_zero(interval)]
    sample.outputs += 1
    sample.response_sum += response_s
    sample.slowdown_sum += slowdown
    sample.qos_sum += worth
    if settings.keep:
        end = 3 * clock.kept
        world.kept[end] = query
        world.kept[end + 1], world.kept[end + 2] = arrived_at_s, left_at_s
        clock.kept += 1
    clock.outputs += 1
