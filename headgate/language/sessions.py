"""Makes of a text with session_window() what can be computed."""

from collections.abc import Mapping, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from headgate.errors import QueryRefused
from headgate.language.clauses import depths_of, insert, places_of
from headgate.language.tokens import tokens_of
from headgate.language.windows import called_session, refuse_other_time
from headgate.model.query import Query
from headgate.model.window import END, START, Input, Stateful, Window

_FIX = "write SELECT ... FROM s GROUP BY k, session_window(ts, '5 minutes')"


def sessions_of(query: Query, streams: Sequence[str], times: Mapping[str, str | None]) -> Stateful:
    """Gives how a query is computed that groups by session.

    Args:
        streams: those it reads.
        times: the column with the time of a tuple, of all streams by name.

    Raises:
        QueryRefused: it does more than that, or not by the stream's time.
    """
    called = called_session(query)
    assert called is not None
    column, gap, call = called
    if len(streams) != 1:
        fix = "write a window behind each stream, as in FROM a [RANGE 10 MINUTES]"
        raise _refused(query, "is for a query over one stream", fix)
    refuse_other_time(query, column, streams[0], times, "session_window")
    tokens = [token for token in tokens_of(query.sql) if token.token_type != TokenType.SEMICOLON]
    words = [token.text.upper() for token in tokens]
    places = places_of(tokens)
    if words.count("SELECT") != 1 or words[0] != "SELECT" or "FROM" not in places:
        raise _refused(query, "is for one SELECT ... FROM a stream", _FIX)
    if not _groups_by_session(tokens, places):
        raise _refused(query, "does not stand by itself in GROUP BY", _FIX)
    hidden = {places["FROM"]: f", {call}.start AS {START}, {call}.end AS {END} "}
    window = Window(axis="time", size=gap)
    having = places.get("HAVING")
    return Stateful(
        mode="sessions",
        text=insert(query.sql, tokens, hidden),
        inputs=(Input(stream=streams[0], view=streams[0], window=window),),
        opened=None if having is None else insert(query.sql, tokens[:having], hidden),
    )


def _groups_by_session(tokens: Sequence[Token], places: Mapping[str, int]) -> bool:
    """Tells whether one of the keys is the session."""
    first = places.get("GROUP BY", len(tokens)) + 1
    keys = depths_of(tokens)[first : places.get("HAVING", len(tokens))]
    begins = True
    for place, (token, depth) in enumerate(keys):
        if begins and token.text.lower() == "session_window":
            after = [word for word, inside in keys[place + 2 :] if not inside][1:2]
            if not after or after[0].token_type != TokenType.DOT:
                return True
        begins = not depth and token.token_type == TokenType.COMMA
    return False


def _refused(query: Query, reason: str, fix: str) -> QueryRefused:
    return QueryRefused(query=query.name, clause="session_window()", reason=reason, fix=fix)
