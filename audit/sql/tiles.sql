-- Leaves and nodes of before, as tiles and batches. Where somebody had taken away a node, the tile
-- has no root, and verification says so.
ALTER TABLE audit_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
ALTER TABLE audit_batch ALTER COLUMN edge SET STORAGE EXTERNAL;

INSERT INTO audit_tile (level, index, hashes, root)
SELECT 0, below.tile, below.hashes, COALESCE(n.hash, '')
FROM (
    SELECT index / 256 AS tile, string_agg(hash, '' ORDER BY index) AS hashes FROM audit_leaf
    GROUP BY 1 HAVING count(*) = 256
) below
LEFT JOIN audit_node n ON n.level = 8 AND n.index = below.tile;

INSERT INTO audit_tile (level, index, hashes, root)
SELECT below.level, below.tile, below.hashes, COALESCE(n.hash, '')
FROM (
    SELECT (level / 8)::smallint AS level, index / 256 AS tile,
        string_agg(hash, '' ORDER BY index) AS hashes
    FROM audit_node GROUP BY 1, 2 HAVING count(*) = 256
) below
LEFT JOIN audit_node n ON n.level = (below.level + 1) * 8 AND n.index = below.tile;

-- A batch holds its entries in the order of their ids: another begins where one comes late, and
-- after eight tiles at the latest.
INSERT INTO audit_batch (first_index, leaves, ids, edge)
SELECT min(index), count(*), range_agg(int8range(entry_id, entry_id, '[]')),
    COALESCE(
        string_agg(hash, '' ORDER BY index) FILTER (WHERE index >= size / 256 * 256), '')
FROM (
    SELECT index, entry_id, hash, max(index) OVER () + 1 AS size,
        count(*) FILTER (WHERE begins) OVER (ORDER BY index) AS batch
    FROM (
        SELECT index, entry_id, hash,
            index % 2048 = 0 OR lag(index) OVER leaves <> index - 1
                OR lag(entry_id) OVER leaves > entry_id AS begins
        FROM audit_leaf WINDOW leaves AS (ORDER BY index)
    ) leaf
) leaf
GROUP BY batch;
