-- SPDX-License-Identifier: Apache-2.0
-- The tables of the handler `inventory_deduct` (inventory.c), and what its login needs: in the database of claimd's jobs.
CREATE SCHEMA inventory;
CREATE TABLE inventory.stock (
    sku text PRIMARY KEY,
    quantity integer NOT NULL CHECK (quantity >= 0)
);
-- What was taken by which job.
CREATE TABLE inventory.deduction (
    job_id bigint PRIMARY KEY,
    sku text NOT NULL REFERENCES inventory.stock,
    quantity integer NOT NULL
);
CREATE ROLE inventory LOGIN;
GRANT USAGE ON SCHEMA inventory, claimd TO inventory;
GRANT SELECT, UPDATE ON inventory.stock TO inventory;
GRANT INSERT ON inventory.deduction TO inventory;
GRANT EXECUTE ON FUNCTION claimd.complete_in_tx TO inventory;
