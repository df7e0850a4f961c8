-- Who approved a call that runs, for the entry of its outcome: with the vote, and the proof by which
-- they confirmed that it is they.
CREATE OR REPLACE FUNCTION approvals_approvers(call uuid)
RETURNS jsonb
LANGUAGE sql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'name', u.username, 'vote', v.id, 'step_up', NULLIF(v.step_up, ''),
        'proof', p.statement_digest)) ORDER BY v.id)
    FROM approvals_vote v JOIN accounts_user u ON u.id = v.person_id
    LEFT JOIN accounts_proof p ON p.id = v.proof_id
    WHERE v.approval_id = call AND v.approve AND v.fallen_at IS NULL
$$;
