-- SPDX-License-Identifier: Apache-2.0
-- From here on, functions are defined in sql/functions, which `claimctl db migrate` loads when they have changed:
-- docs/decisions/0032-functions-as-files.md.

-- The release of the functions, raised when those of a newer release are loaded: an older claimctl then leaves them as they are.
-- 1000000 for each x of x.y.z, 1000 for each y.
ALTER TABLE cluster ADD COLUMN functions_version integer NOT NULL DEFAULT 0;

-- The files as they were last loaded.
CREATE TABLE function_file (
    name text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    loaded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT function_file_pkey PRIMARY KEY (name)
);

-- The functions of these files as they were loaded, so that `claimctl doctor` notices later changes.
CREATE TABLE function_loaded (
    signature text COLLATE "C" NOT NULL,
    file text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    CONSTRAINT function_loaded_pkey PRIMARY KEY (signature)
);

GRANT SELECT ON function_file, function_loaded TO claimd_admin, claimd_reader;

-- Handler files that a worker does not serve, for `claimctl workers` and `claimctl doctor`: each as "FILE: why".
ALTER TABLE worker ADD COLUMN refused text[] NOT NULL DEFAULT '{}';

-- ---- down ----
ALTER TABLE worker DROP COLUMN refused;
DROP TABLE function_loaded, function_file;
ALTER TABLE cluster DROP COLUMN functions_version;
