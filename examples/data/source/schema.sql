-- Crossings, tickets and refunds.
CREATE TABLE crossing (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    route      text NOT NULL,
    ship       text NOT NULL,
    departs_at timestamptz NOT NULL,
    cancelled  boolean NOT NULL DEFAULT false,
    UNIQUE (ship, departs_at)
);

CREATE TABLE ticket (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    crossing_id bigint NOT NULL REFERENCES crossing,
    price       integer NOT NULL CHECK (price >= 0),
    used_at     timestamptz
);

CREATE TABLE refund (
    ticket_id   bigint PRIMARY KEY REFERENCES ticket,
    amount      integer NOT NULL CHECK (amount > 0),
    approved_by text,
    paid_at     timestamptz,
    CHECK (amount <= 2000 OR approved_by IS NOT NULL)
);

CREATE VIEW refund_to_pay AS
    SELECT * FROM refund WHERE paid_at IS NULL;
