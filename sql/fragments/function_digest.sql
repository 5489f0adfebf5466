-- SPDX-License-Identifier: Apache-2.0
-- A digest of what a function `p` of pg_proc does, from columns that are the same in a copy of the database on another server. It
-- leaves out bodies that are bound at creation.
md5(concat_ws(' ', p.prosrc, p.provolatile, p.prosecdef, p.proconfig))
