"""The expected answer of every query, as SQL over all rows at once.

The answers are written independently of the queries: windows are Spark's own window(), or there are
none, and arrays are sorted where the queries rank. `bid`, `auction` and `person` have the rows that
are not late, `every_bid` has all bids, and a window counts once it has closed.
"""

from collections.abc import Mapping

RANKS = (
    "count(*), count_if(price < 10000), count_if(price BETWEEN 10000 AND 999999),"
    " count_if(price > 999999)"
)
BOTH = ", ".join(
    f"count(DISTINCT {column}), count(DISTINCT CASE WHEN price < 10000 THEN {column} END),"
    f" count(DISTINCT CASE WHEN price BETWEEN 10000 AND 999999 THEN {column} END),"
    f" count(DISTINCT CASE WHEN price > 999999 THEN {column} END)"
    for column in ("bidder", "auction")
)
SOLD = (
    "(SELECT a.id, first(a.seller) AS seller, first(a.category) AS category,"
    " first(a.expires) AS expires, max(b.price) AS final FROM bid b, auction a"
    " WHERE b.auction = a.id AND a.dateTime <= b.dateTime AND b.dateTime <= a.expires"
    " GROUP BY a.id)"
)


def closed(stream: str, size: str, slide: str, upto: str) -> str:
    """Return a relation with each row once for every closed window `w` that contains it."""
    every = f"SELECT *, window(dateTime, '{size}', '{slide}') AS w FROM {stream}"
    return f"(SELECT * FROM ({every}) WHERE w.end <= TIMESTAMP '{upto}')"


def answers(marks: Mapping[str, str]) -> dict[str, str]:
    """Return the SQL of all answers, by query.

    Args:
        marks: the watermark of every stream, as text; under `all`, the least of them.
    """
    bids = marks["bid"]
    sales = min(bids, marks["auction"])
    today = f"date_trunc('DAY', dateTime) + INTERVAL 1 DAY <= TIMESTAMP '{bids}'"
    joined = "a.id = b.auction AND b.dateTime >= a.dateTime AND b.dateTime <= a.expires"
    ten_minutes = ("10 minutes", "1 minute", sales)
    return {
        "q0": "SELECT auction, bidder, price, dateTime, extra FROM every_bid",
        "q1": "SELECT auction, bidder, CAST(price * 908 AS DECIMAL(20)) / 1000, dateTime, extra"
        " FROM every_bid",
        "q2": "SELECT auction, price FROM every_bid WHERE auction IN"
        " (SELECT 123 * id FROM range(1000000))",
        "q3": "SELECT p.name, p.city, p.state, a.id FROM person p JOIN auction a ON p.id = a.seller"
        " AND a.dateTime + INTERVAL 10 SECONDS >= p.dateTime"
        " AND a.dateTime <= p.dateTime + INTERVAL 10 MINUTES"
        " WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')",
        "q4": f"SELECT category, avg(final) FROM {SOLD} WHERE date_trunc('MINUTE', expires)"
        f" + INTERVAL 1 MINUTE <= TIMESTAMP '{sales}' GROUP BY category,"
        " date_trunc('MINUTE', expires)",
        "q5": "SELECT auction, n, w.end FROM (SELECT auction, w, count(*) AS n,"
        " max(count(*)) OVER (PARTITION BY w) AS most"
        f" FROM {closed('bid', '10 seconds', '2 seconds', bids)} GROUP BY auction, w)"
        " WHERE n = most",
        "q6": "SELECT seller, aggregate(last, 0L, (s, x) -> s + x.final) / size(last), size(last)"
        " FROM (SELECT seller, w, slice(array_sort(collect_list(struct(-unix_micros(expires), id,"
        " final))), 1, 10) AS last FROM (SELECT a.id, a.seller, a.expires, a.w,"
        f" max(b.price) AS final FROM {closed('auction', *ten_minutes)} a"
        f" JOIN {closed('bid', *ten_minutes)} b ON a.w = b.w AND {joined} AND a.expires < a.w.end"
        " GROUP BY ALL) GROUP BY seller, w)",
        "q7": "SELECT auction, price, bidder, dateTime, extra FROM (SELECT *,"
        " rank() OVER (PARTITION BY w ORDER BY price DESC) AS r"
        f" FROM {closed('bid', '10 seconds', '10 seconds', bids)}) WHERE r = 1",
        "q8": "SELECT p.id, p.name, p.w.start"
        f" FROM {closed('person', '10 seconds', '10 seconds', marks['all'])} p WHERE EXISTS"
        f" (SELECT 1 FROM {closed('auction', '10 seconds', '10 seconds', marks['all'])} a"
        " WHERE a.seller = p.id AND a.w = p.w)",
        "q9": "SELECT id, itemName, description, initialBid, reserve, dateTime, expires, seller,"
        " category, extra, -best.bidder, best.price, timestamp_micros(-best.micros), best.extra"
        " FROM auction JOIN (SELECT a.id AS sold, max(struct(b.price, -unix_micros(b.dateTime)"
        " AS micros, -b.bidder AS bidder, b.extra)) AS best FROM auction a JOIN bid b"
        f" ON {joined} GROUP BY a.id) ON id = sold"
        f" WHERE window(expires, '10 seconds').end <= TIMESTAMP '{sales}'",
        "q10": "SELECT auction, bidder, price, dateTime, extra, CAST(CAST(dateTime AS DATE) AS"
        " STRING), substring(CAST(dateTime AS STRING), 12, 5) FROM every_bid",
        "q11": "SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 SECONDS FROM"
        " (SELECT *, sum(fresh) OVER (PARTITION BY bidder ORDER BY dateTime) AS number FROM"
        " (SELECT *, CASE WHEN dateTime - INTERVAL 10 SECONDS <= lag(dateTime)"
        " OVER (PARTITION BY bidder ORDER BY dateTime) THEN 0 ELSE 1 END AS fresh FROM bid))"
        " GROUP BY bidder, number"
        f" HAVING max(dateTime) + INTERVAL 10 SECONDS < TIMESTAMP '{bids}'",
        "q13": "SELECT auction, bidder, price, dateTime, value FROM every_bid, side"
        " WHERE key = auction - 100 * (auction DIV 100)",
        "q14": "SELECT * FROM (SELECT auction, bidder, CAST(price * 908 AS DECIMAL(20)) / 1000 AS"
        " euros, if(hour(dateTime) IN (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18), 'dayTime',"
        " if(hour(dateTime) IN (7, 19), 'otherTime', 'nightTime')), dateTime, extra,"
        " size(filter(split(extra, ''), x -> x = 'c')) FROM every_bid)"
        " WHERE euros > 1000000 AND euros < 50000000",
        "q15": "SELECT CAST(CAST(dateTime AS DATE) AS STRING) AS day,"
        f" {RANKS}, {BOTH} FROM bid WHERE {today} GROUP BY day",
        "q16": "SELECT channel, CAST(CAST(dateTime AS DATE) AS STRING) AS day,"
        f" date_format(max(dateTime), 'HH:mm'), {RANKS}, {BOTH} FROM bid WHERE {today}"
        " GROUP BY channel, day",
        "q17": f"SELECT auction, CAST(CAST(dateTime AS DATE) AS STRING) AS day, {RANKS},"
        f" min(price), max(price), sum(price) / count(*), sum(price) FROM bid WHERE {today}"
        " GROUP BY auction, day",
        "q18": "SELECT auction, bidder, -last.price, last.channel, last.url, last.dateTime,"
        " last.extra FROM (SELECT auction, bidder, max(struct(dateTime, -price AS price, extra,"
        f" channel, url)) AS last FROM bid WHERE date_trunc('MINUTE', dateTime) + INTERVAL 1 MINUTE"
        f" <= TIMESTAMP '{bids}' GROUP BY auction, bidder, date_trunc('MINUTE', dateTime))",
        "q19": "SELECT auction, top.bidder, -top.price, top.dateTime, top.extra, place + 1 FROM"
        " (SELECT auction, array_sort(collect_list(struct(-price AS price, dateTime, bidder,"
        f" extra))) AS tops FROM {closed('bid', '60 seconds', '20 seconds', bids)}"
        " GROUP BY auction, w) LATERAL VIEW posexplode(slice(tops, 1, 10)) AS place, top",
        "q20": "SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, b.extra,"
        " a.itemName, a.description, a.initialBid, a.reserve, a.dateTime, a.expires, a.seller,"
        " a.category, a.extra FROM auction a JOIN bid b ON a.id = b.auction"
        " WHERE a.category = 10 AND b.dateTime BETWEEN a.dateTime - INTERVAL 10 SECONDS"
        " AND a.dateTime + INTERVAL 2 MINUTES",
        "q21": "SELECT * FROM (SELECT auction, bidder, price, channel, coalesce(map('Apple', '0',"
        " 'Google', '1', 'Facebook', '2', 'Baidu', '3')[channel],"
        " str_to_map(split_part(url, '?', 2), '&', '=')['channel_id']) AS number FROM every_bid)"
        " WHERE number IS NOT NULL",
        "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4),"
        " split_part(url, '/', 5), split_part(url, '/', 6) FROM every_bid",
    }
