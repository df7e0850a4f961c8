import pytest

from tests.examples.running import Connection, text_of

EXAMPLE = "calculator"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 * (3 + 4) ** 2", "98"),
        ("-7 // 2", "-4"),
        ("7 % 4 - +3", "0"),
        ("2 ** 64", "18446744073709551616"),
        ("2 ** -1", "0.5"),
        ("sqrt(16) * cos(pi)", "-4.0"),
        ("round(2.567, 2) + max(1, 2, 3)", "5.57"),
        (" 10 / 4 ", "2.5"),
    ],
)
def test_it_evaluates_an_expression(server: Connection, expression: str, value: str) -> None:
    result = server.call("evaluate", expression=expression)

    assert text_of(result) == value
    assert result.structured_content is None


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("1 / 0", "Division by 0."),
        ("0 ** -1", "Division by 0."),
        ("9 ** 9 ** 9", "9 ** 387420489 is too large."),
        ("1e308 * 10", "The result is too large."),
        ("(10 ** 1000) * (10 ** 1000)", "The result is too large."),
        ("round(5, -10 ** 9)", "at most 300 digits"),
        ("(-8) ** 0.5", "The result is not a real number."),
        ("sqrt(-1)", "sqrt(-1) has no answer: math domain error."),
        ("max()", "max() has no answer"),
        ("2 +", "'2 +' is not an arithmetic expression."),
        ("1; 2", "'1; 2' is not an arithmetic expression."),
        ("x + 1", "'x' is not something this calculator knows."),
        ("True + 1", "'True' is not something this calculator knows."),
        ("'a' * 9", "is not something this calculator knows."),
        ("__import__('os').getcwd()", "is not something this calculator knows."),
        ("(1).__class__", "is not something this calculator knows."),
        ("[i for i in (1, 2)]", "is not something this calculator knows."),
        ("max(*(1, 2))", "is not something this calculator knows."),
        ("round(number=1)", "is not something this calculator knows."),
        ("(" * 150, "is not an arithmetic expression."),
    ],
)
def test_it_refuses_what_is_not_arithmetic(
    server: Connection, expression: str, reason: str
) -> None:
    assert reason in server.error("evaluate", expression=expression)


def test_it_refuses_an_expression_that_is_too_long(server: Connection) -> None:
    assert "at most 200 characters" in server.error("evaluate", expression="1" * 201)


def test_it_adds_and_divides(server: Connection) -> None:
    assert server.call("add", a=0.5, b=2).structured_content == {"result": 2.5}
    assert server.call("divide", dividend=1, divisor=8).structured_content == {"result": 0.125}


def test_it_refuses_to_divide_by_zero(server: Connection) -> None:
    assert "1.0 cannot be divided by 0." in server.error("divide", dividend=1, divisor=0)


def test_it_refuses_a_sum_beyond_floating_point(server: Connection) -> None:
    assert "too large" in server.error("add", a=1e308, b=1e308)


def test_it_names_a_missing_argument(server: Connection) -> None:
    assert "b\n  Field required" in server.error("add", a=1)


def test_every_tool_only_reads(server: Connection) -> None:
    tools = server.tools()

    assert list(tools) == ["evaluate", "add", "divide"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
