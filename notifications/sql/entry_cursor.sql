-- From here on: entries that the record begins with are no news.
INSERT INTO notifications_entrycursor (id, reached, seen, ahead)
SELECT 1, coalesce(max(id), 0), '{}', coalesce(max(id), 0) FROM audit_entryrow;
