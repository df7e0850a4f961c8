"""What may pass, and how one would get past it: a line for each trick."""

from __future__ import annotations

import logging

import pytest
from django.db import connection

from inspection.safe_arguments import (
    is_private_address,
    max_amount,
    path_within,
    shell_safe,
    url_host_in,
)
from inspection.select_statements import OF_ROWS, SQL_MAX, sql_is_select


def split(lines: str) -> list[str]:
    return [line.strip() for line in lines.strip().splitlines()]


def test_paths_stay_below_their_root() -> None:
    for path in ("/srv", "/srv/", "/srv/a", "/srv//a b", "/srv/天气.txt", "/srv/..a"):
        assert path_within(path, "/srv"), path
        assert path_within(path, "/srv/"), path
    assert path_within("/etc/passwd", "/")
    for path in (
        *("", "/", "srv/a", "/srvx", "/srv/../etc", "/srv/..", "/srv/./a", "/SRV/a"),
        *("/srv/%2e%2e/etc", "/srv/\\..\\etc", "/srv/a\0.txt", "/srv/a\n", "file:///srv/a"),
        *("/srv/．．/etc", "/srv/‥/etc", "~/srv/a", "/srv/$HOME", "/srv/*", "/srv/a?", "C:\\srv"),
        "/srv/\u202egpj.exe",
        *("/srv/{.,}./etc", "/srv/[.][.]/etc", "/srv/..;/etc", "/srv/.. /", "/srv/ ../etc"),
        *("/srv/.../etc", "/srv/. ./etc", "/srv/a;b", "/srv/a|b", "/srv/`id`", "/srv/ /a"),
    ):
        assert not path_within(path, "/srv"), path
    assert not path_within("srv/a", "srv")


INSIDE = """
    https://a.example.org/x
    http://A.EXAMPLE.org:8080/?q=https://evil.example/
    https://a.b.example.org./
    https://other.example#@evil.example
"""
OUTSIDE = r"""
    https://example.org/
    https://evil.example/a.example.org
    https://a.example.org.evil.example/
    https://aexample.org/
    https://a.example.org@evil.example/
    https://evil.example\@a.example.org/
    https://evil.example\.a.example.org/
    https://evil.example#a.example.org
    https://evil.example?a.example.org
    https://a.example.org%2eevil.example/
    https://a。example.org/
    https://a.example.org:99999/
    https://a.example.org:x/
    https://.example.org/
    https:///a.example.org/
    https:a.example.org
    //a.example.org/
    ftp://a.example.org/
    javascript://a.example.org/%0aalert(1)
    https://a.example.org /
    https://[::1]/
    a.example.org
"""


def test_urls_lead_to_their_hosts() -> None:
    hosts = ["*.example.org", "Other.example"]
    for url in split(INSIDE):
        assert url_host_in(url, hosts), url
    for url in (*split(OUTSIDE), "", "ht\ntps://a.example.org/", "https://a.example.org/\t"):
        assert not url_host_in(url, hosts), url
    assert not url_host_in("https://a.example.org/", [])


PRIVATE = """
    127.0.0.1
    http://127.1/
    0x7f.1
    0x7f000001
    2130706433
    0177.0.0.1
    0127.0.0.1
    256.1.1.1
    1.2.3.4.5
    10.1.2.3:80
    169.254.169.254
    100.64.0.1
    0.0.0.0
    224.0.0.1
    localhost
    LOCALHOST.
    db.internal
    intranet
    ::1
    http://[::ffff:10.0.0.1]/
    http://[fe80::1%25eth0]/
    http://[2002:7f00:1::]/
    http://[64:ff9b::7f00:1]/
    [64:ff9b:1::7f00:1]
    [::127.0.0.1]
    http://[::169.254.169.254]/
    [::ffff:0:127.0.0.1]
    [fec0::1]
    [5f00::1]
    [2001:0:808:808:0:0:80ff:fffe]
    [2606:4700::5efe:10.0.0.1]
    [2606:4700::200:5efe:127.0.0.1]
    kubernetes.default.svc
    vault.service.consul
    https://api.default.svc.cluster.local:6443/
    x.corp
    router.home
    x.home.arpa
    x.private
    168.63.129.16
    http://[::ffff:168.63.129.16]/
    http://user@8.8.8.8/
    http://8.8.8.8\\@10.0.0.1/
"""


def test_private_addresses_are_known_however_they_are_written() -> None:
    for address in (*split(PRIVATE), "", "http://", "8.8.8.8 "):
        assert is_private_address(address), address
    public = ("8.8.8.8", "https://8.8.8.8:443/x", "example.com:80", "https://[2606:4700::1111]/")
    carrying = (
        "[::ffff:8.8.8.8]",
        "[64:ff9b::8.8.8.8]",
        "[2002:808:808::]",
        "[2606:4700::5efe:808:808]",
    )
    for address in (*public, *carrying, "134744072", "https://a.example.com./"):
        assert not is_private_address(address), address


def test_a_word_means_nothing_to_a_shell() -> None:
    for word in ("report.txt", "a@b.example", "/srv/x-1", "50%", "1=b", "./a=b", "iffy", "cdx"):
        assert shell_safe(word), word
    for word in ("", "-rf", "--", "a b", "a;b", "$(x)", "`x`", "a|b", "a>b", "a&", "a\n", "*", "~"):
        assert not shell_safe(word), word
    for word in ("'", '"', "\\", "#a", "{a,b}", "!x", "é"):
        assert not shell_safe(word), word
    # An assignment, a word of the language, a path to a command (zsh), an option, a job.
    for word in ("PATH=/tmp", "a=b", "a+=b", "a.b=c", "if", "done", "=ls", "+x", "%1"):
        assert not shell_safe(word), word
    # Commands of the shell itself, and files that programs read for an argument.
    for word in (".", ":", "eval", "source", "export", "unset", "exec", "cd", "trap", "alias"):
        assert not shell_safe(word), word
    assert not shell_safe("@/etc/passwd")


READS = r"""
    select 1
    SELECT count(*) FROM t WHERE a IN (SELECT b FROM u) LIMIT 5;
    select "count"(1)
    (select 1) union all (select lower(x) from y)
    with r as (select 1) select * from r
    select case when a and b or c::int = 3 then 1 end, a between 1 and 2, j->>'a'
    select extract(year from d)
    select E'a\', pg_sleep(1) --'
    select 'drop table t; delete from t' -- pg_sleep(1)
    select t.a, t."B", t.date, public.t.length, (t.a).* from t where t.n like 'x'
    select t.count, (t.a).lower from t
    select u.length from (select a as length from t) u
    select t.*, lower.lower, w.lower, w from t, lower('A') join lower('b') w on w = t.w
"""
DOES_MORE = r"""
    select 1; drop table t
    select * into t from x
    with x as (delete from t returning *) select * from x
    with x as (insert into t values (1) returning *) select * from x
    select 1 for update
    explain analyze delete from t
    copy t to program 'x'
    do $$ begin end $$
    set role postgres
    merge into t using x on true when matched then delete
    select pg_sleep(1)
    select "pg_sleep"(1)
    select pg_catalog.pg_sleep(1)
    select s.count(1)
    select "COUNT"(*) from t
    select "Lower"('x')
    select (t)."Lower" from t
    select t."Lower" from lower('x') t
    select pg_sleep /* */ (1)
    select * from pg_read_file('/etc/passwd')
    select * from rows from (pg_sleep(1))
    select * from a, lateral pg_sleep(1)
    select (select nextval('s'))
    select 1 order by set_config('a', 'b', false)
    select 'a\', pg_sleep(1) --'
    select $x$ ' $x$, pg_sleep(1) --'
    select 1 -- \n, pg_sleep(1)
    select U&"\0070g_sleep"(1)
    select * from dblink('', 'select 1') as t(a int)
    select current_user
    select user
    select current_role
    select u.length from current_user u
    select t.row_to_json from t
    select t."row_to_json" from t
    select public.t.pg_typeof from t
    select 1 from t order by t.to_jsonb
    select (t).row_to_json from t
    select (a).pg_sleep from (select 1 as a) t
    select (t.a).pg_read_file from t
    select (array['/etc/passwd'])[1].pg_read_file
    select t.a[1].pg_sleep from t
    select ('/etc/passwd'::text).pg_read_file
    select (select t from t).pg_typeof
    select t.pg_read_file from lower('/etc/passwd') t
    select t.pg_read_file from lower('/etc/passwd') as t(a)
    select lower.pg_read_file from lower('/etc/passwd')
    select t.length from lower('x') t where exists (select from lower('y') t(length))
    select t.pg_read_file from a, lateral lower(a.b) t
    select t.pg_read_file from a join lower('/etc/passwd') t on true
    select t.pg_read_file from cast('/etc/passwd' as text) t
    select b.pg_sleep from a, lateral (select a.c) b, lower('x') b
    table t; table u
    values (lo_import('/etc/passwd'))
    SELECT 1 /*!INTO OUTFILE '/tmp/x'*/
    SELECT 1 /*!50000 INTO OUTFILE '/tmp/x'*/
    SELECT 1 /*M! INTO OUTFILE '/tmp/x'*/
    selec 1
"""


def test_a_select_reads_and_calls_what_it_may(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        for text in split(READS):
            assert sql_is_select(text.replace("\\n", "\n"), ["COUNT", "lower"]), text
        for text in ("", *split(DOES_MORE)):
            assert not sql_is_select(text.replace("\\n", "\n"), ["count", "lower"]), text
    # A statement is nothing for a log.
    assert caplog.text == ""
    with pytest.raises(ValueError, match="longer than 4000"):
        sql_is_select("select " + "1" * SQL_MAX, [])
    # The last takes minutes where every reading of it is tried.
    for deep in ("(" * 500 + "1" + ")" * 500, "a," * 1900 + "1", "array[" * 25 + "1" + "]" * 25):
        with pytest.raises(ValueError, match="nested too deeply"):
            sql_is_select(f"select {deep}", [])


def test_amounts_are_numbers_within_bounds() -> None:
    for amount in (0, 99.5, 100, "100", "1e2", "+7.50"):
        assert max_amount(amount, 100), amount
    for amount in (
        -1,
        100.01,
        float("nan"),
        float("inf"),
        True,
        "",
        "nan",
        "1_0",
        "٣",
        "1,0",
        "-0.1",
        "100.000000000000000001",
        10**400,
        "1e999999999",
        "-1e-999999999",
    ):
        assert not max_amount(amount, 100), amount
    assert not max_amount(9007199254740993, 9007199254740992.0)
    assert max_amount(9007199254740992, 9007199254740992.0)
    assert not max_amount("0.3000000000000000055511151231257828", 0.3)
    assert max_amount("0.3", 0.3)
    assert max_amount(0.3, 0.3)
    assert not max_amount(1, float("nan"))


@pytest.mark.django_db
def test_all_functions_of_postgresql_that_take_a_row_are_known() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT proname FROM pg_proc WHERE prokind IN ('f', 'a')"
            " AND pronamespace = 'pg_catalog'::regnamespace AND pronargs - pronargdefaults <= 1"
            " AND proargtypes[0]::regtype::text IN ('record', '\"any\"', 'anyelement',"
            " 'anynonarray', 'anycompatible', 'anycompatiblenonarray')"
        )
        found = {name for (name,) in cursor.fetchall()}

    assert found >= {"row_to_json", "count"}
    assert found - OF_ROWS == set()
