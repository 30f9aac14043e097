"""Functions that the generator leaves out, each with the reason."""

RANDOM = "nondeterministic"
CLOCK = "depends on the clock"
ENVIRONMENT = "depends on the environment: user, catalog, files, partitions or version"
ORDER = "its result depends on the order of rows, and the call has no ORDER BY"
TIES = "its result depends on the order of rows where several tie"
SKETCH = "its bytes or estimate depend on the order of rows and on partial merges"
CODE = "calls arbitrary code in the JVM"
TABLE = "is a table function or a marker, not an expression over a row"
ELSEWHERE = "is a clause of its own kind of query here, generated apart"
ABSENT = "needs a package or a setting that the session does not have"
RAISES = "always raises"

EXCLUDED: dict[str, str] = {
    **dict.fromkeys(("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle"), RANDOM),
    "aes_encrypt": RANDOM,  # with a random vector, unless one is passed
    **dict.fromkeys(
        (
            *("now", "current_timestamp", "current_date", "curdate", "localtimestamp"),
            *("current_time", "localtime", "unix_timestamp"),
        ),
        CLOCK,
    ),
    **dict.fromkeys(
        (
            *("session_user", "current_user", "user", "current_database", "current_schema"),
            *("current_catalog", "current_path", "version", "current_timezone"),
            *("input_file_name", "input_file_block_start", "input_file_block_length"),
            *("spark_partition_id", "monotonically_increasing_id"),
        ),
        ENVIRONMENT,
    ),
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), CODE),
    **dict.fromkeys(
        (
            *("first", "first_value", "last", "last_value", "any_value", "collect_list"),
            *("array_agg", "listagg", "string_agg", "collect_set", "collect_union"),
            *("nth_value", "lag", "lead", "row_number", "ntile", "counter_diff"),
            *("rank", "dense_rank", "percent_rank", "cume_dist"),
        ),
        ORDER,
    ),
    **dict.fromkeys(("mode", "max_by", "min_by", "approx_top_k"), TIES),
    **dict.fromkeys(
        (
            *("histogram_numeric", "percentile_approx", "approx_percentile", "count_min_sketch"),
            *("kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float"),
            *("kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float"),
            *("theta_sketch_agg", "theta_union_agg", "theta_intersection_agg"),
            *("tuple_sketch_agg_double", "tuple_sketch_agg_integer", "tuple_union_agg_double"),
            *("tuple_union_agg_integer", "tuple_intersection_agg_double"),
            *("tuple_intersection_agg_integer", "hll_sketch_agg", "hll_union_agg"),
            *("approx_top_k_accumulate", "approx_top_k_combine", "schema_of_variant_agg"),
        ),
        SKETCH,
    ),
    **dict.fromkeys(
        (
            *("range", "python_worker_logs", "sql_keywords", "collations", "variant_explode"),
            *("variant_explode_outer", "measure", "grouping", "grouping_id"),
        ),
        TABLE,
    ),
    **dict.fromkeys(("window", "session_window", "window_time"), ELSEWHERE),
    **dict.fromkeys(
        (
            *("from_avro", "to_avro", "schema_of_avro", "from_protobuf", "to_protobuf"),
            *("st_setsrid", "st_asbinary", "st_geomfromwkb", "st_srid", "st_geogfromwkb"),
            *("timestamp_nanos", "unix_nanos"),
        ),
        ABSENT,
    ),
    "raise_error": RAISES,
}


def listing() -> str:
    """Return the exclusion list, one line per reason."""
    reasons: dict[str, list[str]] = {}
    for name, reason in EXCLUDED.items():
        reasons.setdefault(reason, []).append(name)
    return "\n".join(f"excluded, {reason}: {', '.join(names)}" for reason, names in reasons.items())
