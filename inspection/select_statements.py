"""Whether a text is one SELECT statement that only reads.

Loading this takes 40 MB and a third of a second: only processes do whose rules ask for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise

import sqlglot
from sqlglot import expressions as sql
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

# It would write statements that it does not know into the log.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)

# As long as takes some 40 ms to parse.
SQL_MAX = 4000


def sql_is_select(text: str, functions: Sequence[str]) -> bool:
    """Whether the text is one SELECT that writes nothing and calls only these functions, by their
    names in SQL. Raises ValueError where the text is too long or too deep to be told.

    It is no sandbox: views, operators, casts and types run code of the database's own.
    """
    if len(text) > SQL_MAX:
        raise ValueError(f"the statement is longer than {SQL_MAX} characters")
    known = {name.lower() for name in functions}
    try:
        written = _written_calls(sqlglot.tokenize(text, read="postgres"))
        statements = sqlglot.parse(text, read="postgres")
    except RecursionError as error:
        raise ValueError("the statement is nested too deeply") from error
    except SqlglotError:
        return False
    if len(statements) != 1 or not isinstance(statements[0], sql.Query) or not written <= known:
        return False
    return all(_only_reads(node, known) for node in statements[0].walk())


def _written_calls(tokens: list[Token]) -> set[str]:
    """Names that stand before a parenthesis: several may be one function to the parser."""
    return {
        token.text.lower()
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


def _only_reads(node: sql.Expr, known: set[str]) -> bool:
    if isinstance(node, sql.Func) and not isinstance(node, _SYNTAX):
        return not isinstance(node.parent, sql.Dot) and bool(_names(node) & known)
    return isinstance(node, sql.Query) or not isinstance(node, _WRITING)


def _names(node: sql.Func) -> set[str]:
    if isinstance(node, sql.Anonymous):
        return {node.name.lower()}
    in_postgres = node.sql("postgres").partition("(")[0]
    return {name.lower() for name in (in_postgres, *node.sql_names())}
