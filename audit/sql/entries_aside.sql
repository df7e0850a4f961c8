-- The table of entries in words makes room for the view of its name, until it is carried over.

ALTER TABLE audit_entry RENAME TO audit_entry_1;
ALTER INDEX audit_entry_at RENAME TO audit_entry_1_at;
ALTER INDEX audit_entry_beside RENAME TO audit_entry_1_beside;
ALTER INDEX audit_one_entry_a_move RENAME TO audit_one_entry_1_a_move;
