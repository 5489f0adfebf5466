# SPDX-License-Identifier: Apache-2.0
# cmake/EmbedSql.cmake: what it makes of a query, and what it refuses. Run as cmake -DSCRIPT=… -DFOLDER=… -P.

# Runs the generator over one query and leaves its messages and code in `said` and `code`.
macro(embed name text)
    file(WRITE ${FOLDER}/${name}.sql "${text}")
    execute_process(COMMAND ${CMAKE_COMMAND} -DFOLDER=${FOLDER} -DQUERIES=${FOLDER}/${name}.sql -DMIGRATIONS=${ARGN}
            -DFUNCTIONS=${functions} -DFRAGMENTS=${FOLDER}/carried.sql -DRELEASE=12.34.5 -P ${SCRIPT}
        RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
endmacro()

function(must_refuse name text reason)
    embed(${name} "${text}" ${ARGN})
    if(code EQUAL 0 OR NOT said MATCHES "${reason}")
        message(SEND_ERROR "${name}: expected a refusal that says '${reason}', got ${code}: ${said}")
    endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
file(WRITE ${FOLDER}/carried.sql "-- Why.\nid, fence\n")

embed(good "-- Why.\n-- params: int8[], text\nSELECT $2, '[;]', $1, $2, {carried}\n")
file(READ ${FOLDER}/queries.c source)
string(HEX "SELECT $2, '[;]', $1, $2, id, fence\n" hex)
string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
if(NOT code EQUAL 0 OR NOT source MATCHES "SQL_GOOD = {\"good\"" OR NOT source MATCHES "good_types\\[\\] = {1016U, 25U}")
    message(SEND_ERROR "good: ${code}: ${said}\n${source}")
endif()
string(FIND "${source}" "{${hex}0x00}" at)
if(at EQUAL -1)
    message(SEND_ERROR "good: not embedded byte by byte:\n${source}")
endif()

must_refuse(unknown_type "-- params: int7\nSELECT $1\n" "unknown parameter type 'int7'")
must_refuse(too_few "-- params: int8\nSELECT $1, $2\n" "names 1 types, the statement uses \\$2")
must_refuse(too_many "-- params: int8, int8\nSELECT $1\n" "names 2 types, the statement uses \\$1")
must_refuse(no_header "SELECT $1\n" "names 0 types")

file(WRITE ${FOLDER}/m/0002_late.up.sql "SELECT 1")
must_refuse(gap "SELECT 1\n" "versions have no gaps" ${FOLDER}/m/0002_late.up.sql)
file(WRITE ${FOLDER}/m/0001_lone.up.sql "SELECT 1")
must_refuse(lone "SELECT 1\n" "each migration has its .down.sql" ${FOLDER}/m/0001_lone.up.sql)
file(WRITE ${FOLDER}/m/first.sql "SELECT 1")
must_refuse(misnamed "SELECT 1\n" "a migration is called" ${FOLDER}/m/first.sql)
file(WRITE ${FOLDER}/n/0023_own.up.sql "CREATE OR REPLACE FUNCTION f()")
file(WRITE ${FOLDER}/n/0023_own.down.sql "SELECT 1")
set(migrations ${FOLDER}/n/0023_own.up.sql)
foreach(n RANGE 1 22)
    math(EXPR number "10000 + ${n}")
    string(SUBSTRING ${number} 1 4 number)
    file(WRITE ${FOLDER}/n/${number}_m.up.sql "SELECT 1")
    file(WRITE ${FOLDER}/n/${number}_m.down.sql "SELECT 1")
    string(PREPEND migrations "${FOLDER}/n/${number}_m.up.sql,")
endforeach()
must_refuse(function_in_migration "SELECT 1\n" "functions are defined in sql/functions" ${migrations})

set(functions ${FOLDER}/f/jobs.sql)
file(WRITE ${FOLDER}/f/jobs.sql
    "-- Why.\nCREATE OR REPLACE FUNCTION cancel() AS '{carried}';\nCREATE OR REPLACE FUNCTION retry();\n")
embed(with_functions "SELECT 1\n")
file(READ ${FOLDER}/functions.c source)
string(SHA256 digest "CREATE OR REPLACE FUNCTION cancel() AS 'id, fence';\nCREATE OR REPLACE FUNCTION retry();\n")
foreach(part "{\"jobs\", \"{cancel,retry}\"" "\"${digest}\"" "sql_functions_names = \"{jobs}\"" "sql_functions_version = 12034005;")
    string(FIND "${source}" "${part}" at)
    if(NOT code EQUAL 0 OR at EQUAL -1)
        message(SEND_ERROR "functions: no ${part}: ${said}\n${source}")
    endif()
endforeach()
