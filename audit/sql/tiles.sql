-- Hashes, which no compression makes shorter.
ALTER TABLE audit_tile ALTER COLUMN hashes SET STORAGE EXTERNAL;
ALTER TABLE audit_batch ALTER COLUMN edge SET STORAGE EXTERNAL;
