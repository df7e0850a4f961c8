"""The tree above many leaves, which needs no entries."""

import hashlib
import os

import pytest

from audit.tree import NewTile, RightEdge, Tree
from audit.verify import Peaks, node_hash, peaks, root_by_path, root_of
from tests.database import Databases

SIZE = 66_100


def leaf(n: int) -> bytes:
    return hashlib.sha256(b"%d" % n).digest()


@pytest.fixture(scope="module")
def grown() -> tuple[RightEdge, list[NewTile]]:
    edge = RightEdge()
    return edge, [tile for n in range(SIZE) for tile in edge.append(leaf(n))]


def known_root(first: int, last: int) -> bytes:
    """RFC 9162, 2.1.1, as it is written there."""
    if last - first == 1:
        return leaf(first)
    half = 1 << ((last - first - 1).bit_length() - 1)
    return node_hash(known_root(first, first + half), known_root(first + half, last))


def test_whole_tiles_are_those_of_c2sp(grown: tuple[RightEdge, list[NewTile]]) -> None:
    edge, tiles = grown

    below = {tile.index: tile for tile in tiles if tile.level == 0}
    (above,) = [tile for tile in tiles if tile.level == 1]
    assert sorted(below) == list(range(SIZE // 256))
    assert above.hashes == b"".join(below[n].root for n in range(256))
    assert below[7].hashes == b"".join(leaf(n) for n in range(7 * 256, 8 * 256))
    assert [len(hashes) for hashes in edge.levels] == [SIZE % 256, SIZE // 256 - 256, 1]
    assert edge.is_whole
    assert edge.root() == known_root(0, SIZE)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 255, 256, 257, 1000])
def test_roots_are_the_same_by_every_way(size: int) -> None:
    edge, growing = RightEdge(), Peaks()
    for n in range(size):
        for _ in [*edge.append(leaf(n)), *growing.append(leaf(n))]:
            pass
    plain = known_root(0, size) if size else hashlib.sha256().digest()
    assert edge.root() == growing.root() == plain
    assert root_of(peaks([leaf(n) for n in range(size)])) == plain


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_paths_are_read_from_tiles_of_every_level(
    grown: tuple[RightEdge, list[NewTile]], databases: Databases
) -> None:
    edge, tiles = grown
    with databases.superuser(os.environ) as link:
        with link.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO audit_tile (level, index, hashes, root) VALUES (%s, %s, %s, %s)",
                [(one.level, one.index, one.hashes, one.root) for one in tiles],
            )
        link.execute(
            "INSERT INTO audit_batch (first_index, leaves, ids, edge)"
            " VALUES (0, %s, int8multirange(int8range(1, %s)), %s)",
            [SIZE, SIZE + 1, b"".join(edge.levels[0])],
        )

    assert Tree(SIZE).right_edge() == edge
    for size in (SIZE, SIZE - 1, 65_537, 65_536, 65_535, 300):
        tree = Tree(size)
        assert tree.right_edge().root() == known_root(0, size)
        for index in {0, 255, size // 2, size - 1}:
            path = tree.path(index)
            assert root_by_path(index, size, leaf(index), path) == known_root(0, size)
