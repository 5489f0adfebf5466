-- SPDX-License-Identifier: Apache-2.0
-- What a function `p` of pg_proc does, as far as a copy of the database in another server has it too: not bodies that are bound.
md5(concat_ws(' ', p.prosrc, p.provolatile, p.prosecdef, p.proconfig))
