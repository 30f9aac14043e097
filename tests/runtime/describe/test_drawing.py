"""The network, drawn as a text and as a picture."""

from typing import Any
from xml.etree import ElementTree

from headgate.runtime import Drawing, Explanation


def query(name: str, reads: list[str], **more: Any) -> Explanation:
    settings = {"query_class": "H", "operators": [], "sink": f"parquet results/{name}"}
    stream = reads[0] if len(reads) == 1 else "__".join(reads)
    facts = {"sql": f"SELECT *\n  FROM {reads[0]}", "policy": "cqc", "stream": stream}
    return Explanation(query=name, reads=reads, **{**settings, **facts, **more})


QUERIES = [
    query("hot", ["sensors"], shares_code_with=["dry"], shape="mask: a bit for each of 2 queries"),
    query("joined", ["sensors", "quotes"], query_class="N", lane="job: as it is written"),
    query("dry", ["sensors"], shares_code_with=["hot"], shape="mask: a bit for each of 2 queries"),
    query("cheap", ["quotes"], sql="SELECT '<b>' FROM quotes WHERE " + "x < 1 AND " * 20 + "y"),
]
STREAMS = {"quotes": "kafka", "sensors": "parquet", "idle": "rate"}


def test_below_every_stream_stands_what_reads_it() -> None:
    drawing = Drawing.of(QUERIES, STREAMS, "cqc")
    assert drawing.text().splitlines() == [
        "4 queries under cqc",
        "quotes (kafka)",
        "└─ cheap [H] SELECT '<b>' FROM quotes WHERE x < 1 AND x < 1 AND x < 1 AND x < 1 AND x < …"
        " → parquet results/cheap",
        "sensors (parquet)",
        "├─ mask: a bit for each of 2 queries",
        "│  ├─ hot [H] SELECT * FROM sensors → parquet results/hot",
        "│  └─ dry [H] SELECT * FROM sensors → parquet results/dry",
        "└─ with quotes: joined [N, job] SELECT * FROM sensors → parquet results/joined",
        "idle (rate)",
    ]


def test_the_picture_has_a_box_for_each_and_a_line_for_what_flows() -> None:
    page = Drawing.of(QUERIES, STREAMS, "cqc").html()
    picture = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    texts = ["".join(element.itertext()) for element in picture.iter("text")]
    assert len(list(picture.iter("rect"))) == len(STREAMS) + 1 + len(QUERIES)
    for name in (*STREAMS, *(f"{explanation.query}: SELECT" for explanation in QUERIES)):
        assert any(text.startswith(name) for text in texts), name
    # cheap; sensors to the mask, and on to hot and dry; both streams to what joins them
    assert len(list(picture.iter("path"))) == 1 + 3 + 2
    assert "<b>" not in page


def test_boxes_do_not_lie_on_each_other() -> None:
    many = [query(f"q{number}", ["s", "t"] if number % 3 else ["t"]) for number in range(40)]
    page = Drawing.of(many, {"s": "rate", "t": "rate", "u": "rate"}, "hr").html()
    picture = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    boxes = [{key: int(element.attrib[key]) for key in ("x", "y", "width", "height")}
             for element in picture.iter("rect")]  # fmt: skip
    for number, one in enumerate(boxes):
        assert one["y"] + one["height"] <= int(picture.attrib["height"])
        for other in boxes[:number]:
            beside = one["x"] >= other["x"] + other["width"] or one["x"] < other["x"]
            assert beside or abs(one["y"] - other["y"]) >= one["height"]


def test_plain_data_and_back() -> None:
    drawing = Drawing.of(QUERIES, STREAMS, "cqc")
    assert Drawing.from_dict(drawing.to_dict()) == drawing
