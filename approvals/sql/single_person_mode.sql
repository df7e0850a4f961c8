-- Single-person mode is over for good as soon as there is a second approver (approvals_able), however
-- that came: by a group, a right of their own, a first sign-in, or a confirmation.

CREATE OR REPLACE FUNCTION approvals_end_if_two()
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM accounts_singlepersonmode WHERE ended_at IS NULL)
        AND approvals_second_approver()
    THEN
        UPDATE accounts_singlepersonmode SET ended_at = clock_timestamp() WHERE ended_at IS NULL;
        INSERT INTO audit_entry (action, actor_kind, actor, reason) VALUES (
            'single_person_mode.ended', 'system', 'countersign',
            'There is a second approver: from now on nobody decides alone on calls of their own.');
    END IF;
END $$;

CREATE OR REPLACE FUNCTION approvals_end_single_person()
RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM approvals_end_if_two();
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER approvals_end_single_person AFTER INSERT OR UPDATE OF
    is_active, is_superuser, last_login, password, unconfirmed_until, invited_by_id, let_in_by_id
ON accounts_user FOR EACH STATEMENT EXECUTE FUNCTION approvals_end_single_person();
CREATE OR REPLACE TRIGGER approvals_end_single_person AFTER INSERT OR UPDATE
ON accounts_user_groups FOR EACH STATEMENT EXECUTE FUNCTION approvals_end_single_person();
CREATE OR REPLACE TRIGGER approvals_end_single_person AFTER INSERT OR UPDATE
ON accounts_user_user_permissions FOR EACH STATEMENT EXECUTE FUNCTION approvals_end_single_person();
CREATE OR REPLACE TRIGGER approvals_end_single_person AFTER INSERT OR UPDATE
ON auth_group_permissions FOR EACH STATEMENT EXECUTE FUNCTION approvals_end_single_person();
