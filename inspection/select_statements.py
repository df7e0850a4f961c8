"""Whether a text is one SELECT statement that only reads.

Loading this takes 40 MB and a third of a second: only processes do whose rules ask for it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Self

import sqlglot
from sqlglot import expressions as sql
from sqlglot.dialects import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from core.kept_english import gettext as _

# It would write statements that it does not know into the log.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

SQL_MAX = 4000
# MySQL and MariaDB run what these comments hold.
_RUN_COMMENTS = re.compile(r"/\*(?:M?!|\+)")
# What the parser may do: it tries several readings of what is nested, and twice as many with each
# level. Without such readings a statement takes about as many steps as it has words; so many take
# some 30 ms.
STEPS_MAX = 3_000


class TooMuch(Exception):
    """The statement takes more steps to parse than it may."""


class BoundedParser(Postgres.Parser):  # type: ignore[misc]
    """PostgreSQL's grammar; raises TooMuch instead of trying readings without end."""

    def __init__(self) -> None:
        super().__init__(dialect="postgres")
        self.steps = 0

    def _advance(self, times: int = 1) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise TooMuch
        super()._advance(times)


def sql_is_select(text: str, functions: Sequence[str]) -> bool:
    """Whether the text is one SELECT that writes nothing and calls only these functions, by their
    names in SQL. Raises ValueError where the text is too long or too deep to be told.

    It is no sandbox: views, operators, casts and types run code of the database's own.
    """
    if len(text) > SQL_MAX:
        raise ValueError(_("the statement is longer than %(most)d characters") % {"most": SQL_MAX})
    if _RUN_COMMENTS.search(text):
        return False
    known = frozenset(name.lower() for name in functions)
    try:
        tokens = sqlglot.tokenize(text, read="postgres")
        statements = BoundedParser().parse(tokens, text)
    except (RecursionError, TooMuch) as error:
        raise ValueError(_("the statement is too long or nested too deeply to be read")) from error
    except SqlglotError:
        return False
    if len(statements) != 1 or not isinstance(statements[0], sql.Query):
        return False
    nodes = _nodes_of(known)
    attributes = Attributes.of(statements[0], tokens, known)
    return _written_calls(tokens) <= known and all(
        _only_reads(node, known, nodes) and attributes.are_columns(node)
        for node in statements[0].walk()
    )


def _written_calls(tokens: list[Token]) -> set[str]:
    """Names that stand before a parenthesis: several may be one function to the parser."""
    return {
        # In quotes a name keeps its capitals: `"Lower"` is another function than lower.
        token.text if token.token_type == TokenType.IDENTIFIER else token.text.lower()
        for token, following in pairwise(tokens)
        if following.token_type == TokenType.L_PAREN
        and token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        and token.text.lower() not in _WORDS
    }


# Of the language itself, though the parser has functions for them.
_SYNTAX = (
    *(sql.And, sql.Or, sql.Cast, sql.Case, sql.If, sql.Exists, sql.Array, sql.Extract),
    *(sql.JSONExtract, sql.JSONExtractScalar, sql.JSONBExtract, sql.JSONBExtractScalar),
)
_WORDS = {"extract", "cast", "array"}
_WRITING = (sql.DML, sql.DDL, sql.Command, sql.Into, sql.Lock)


def _only_reads(node: sql.Expr, known: frozenset[str], nodes: frozenset[type]) -> bool:
    if isinstance(node, sql.Anonymous):
        return not isinstance(node.parent, sql.Dot) and node.name.lower() in known
    if isinstance(node, sql.Func) and not isinstance(node, _SYNTAX):
        return not isinstance(node.parent, sql.Dot) and type(node) in nodes
    return isinstance(node, sql.Query) or not isinstance(node, _WRITING)


@lru_cache(maxsize=64)
def _nodes_of(names: frozenset[str]) -> frozenset[type]:
    """The types of nodes that the parser makes of calls of these functions."""
    return frozenset(type(node) for name in names for node in _forms(name))


def _forms(name: str) -> list[sql.Expr | None]:
    found: list[sql.Expr | None] = []
    if name.isidentifier() and name.isascii():
        for form in (name, f"{name}()", f"{name}(a)", f"{name}(a, b)"):
            try:
                found.append(sqlglot.parse_one(form, read="postgres"))
            except SqlglotError:
                continue
    return found


# PostgreSQL's own functions that take any row: `t.row_to_json` is a call where `t` has no such
# column. Functions that a database has besides are for its role to keep back.
OF_ROWS = frozenset(
    (
        *("any_out", "any_value", "anycompatible_out", "anycompatiblenonarray_out"),
        *("anyelement_out", "anynonarray_out", "array_agg", "concat", "count", "cume_dist"),
        *("dense_rank", "hash_record", "json_agg", "json_agg_strict", "json_build_array"),
        *("json_build_object", "jsonb_agg", "jsonb_agg_strict", "jsonb_build_array"),
        *("jsonb_build_object", "max", "min", "mode", "num_nonnulls", "num_nulls"),
        *("percent_rank", "pg_collation_for", "pg_column_compression", "pg_column_size"),
        *("pg_column_toast_chunk_id", "pg_restore_attribute_stats"),
        *("pg_restore_relation_stats", "pg_typeof", "quote_literal", "quote_nullable"),
        *("rank", "record_out", "record_send", "row_to_json", "to_json", "to_jsonb"),
    )
)
# Calls without parentheses that the parser takes for columns or tables.
_VALUES = frozenset(
    ["user", "current_user", "session_user", "system_user", "current_role", "current_catalog"]
)


class Attributes(NamedTuple):
    """Whether what follows a dot is a column: `x.f` can also be a call of f with x."""

    known: frozenset[str]
    # Names in FROM that stand for values of any type, not for rows.
    values: frozenset[str]

    @classmethod
    def of(cls, statement: sql.Expr, tokens: list[Token], known: frozenset[str]) -> Self:
        # A function without an alias has its own name.
        functions = {
            token.text.lower()
            for token, following in pairwise(tokens)
            if following.token_type == TokenType.L_PAREN
        }
        aliases = statement.find_all(sql.TableAlias)
        named = {alias.name.lower() for alias in aliases if not _has_rows(alias.parent)}
        return cls(known, frozenset(functions | named))

    def are_columns(self, node: sql.Expr) -> bool:
        if isinstance(node, sql.Dot):
            # The type of what stands before is not known.
            attribute = node.expression
            return isinstance(attribute, sql.Star) or _function_name(attribute) in self.known
        if isinstance(node, sql.Column | sql.Table) and isinstance(node.this, sql.Identifier):
            return (
                self._is_column(node, node.name.lower()) or _function_name(node.this) in self.known
            )
        return True

    def _is_column(self, node: sql.Column | sql.Table, name: str) -> bool:
        if isinstance(node, sql.Table) or not node.table:
            return node.this.quoted or name not in _VALUES
        return name not in OF_ROWS and node.table.lower() not in self.values


def _function_name(node: sql.Expr) -> str:
    is_quoted = isinstance(node, sql.Identifier) and node.quoted
    return node.name if is_quoted else node.name.lower()


def _has_rows(source: sql.Expr | None) -> bool:
    """Whether it is a table, a query or VALUES: a function can give values of any type."""
    is_list = isinstance(source, sql.Values)
    return is_list or (source is not None and isinstance(source.this, sql.Identifier | sql.Query))
