# SPDX-License-Identifier: Apache-2.0
# Tests cmake/EmbedVerbs.cmake: its output for headers, and what it refuses. Run as cmake -DSCRIPT=… -DFOLDER=…
# -P.

# Runs the generator over one query and leaves its messages and code in `said` and `code`.
macro(embed name text)
    file(WRITE ${FOLDER}/admin_${name}.sql "${text}")
    execute_process(COMMAND ${CMAKE_COMMAND} -DFOLDER=${FOLDER} -DQUERIES=${FOLDER}/admin_${name}.sql -P ${SCRIPT}
        RESULT_VARIABLE code OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX REPLACE "[ \n]+" " " said "${said}")
endmacro()

function(must_refuse name text reason)
    embed(${name} "${text}")
    if(code EQUAL 0 OR NOT said MATCHES "${reason}")
        message(SEND_ERROR "${name}: expected a refusal that says '${reason}', got ${code}: ${said}")
    endif()
endfunction()

function(must_make part)
    string(FIND "${source}" "${part}" at)
    if(at EQUAL -1)
        message(SEND_ERROR "expected '${part}' in:\n${source}")
    endif()
endfunction()

file(REMOVE_RECURSE ${FOLDER})
embed(good "-- Why.\n-- params: name text queue, weight int4 1..100 or none, keep text days or default, dry_run bool\n\
-- shows: name text, paused bool wide,\n-- shows: at time\n-- tables: record key = keys, jobs\n\
-- none: no \"{name}\"\n-- method: POST\nSELECT 1\n")
file(READ ${FOLDER}/list.c source)
if(NOT code EQUAL 0)
    message(SEND_ERROR "good: ${code}: ${said}")
endif()
must_make("{.name = \"name\", .form = PARAM_QUEUE},")
must_make("{.name = \"weight\", .form = PARAM_NUMBER, .other = \"none\", .min = 1, .max = INT64_C(100)},")
must_make("{.name = \"keep\", .form = PARAM_DAYS, .other = \"default\", .is_other_passed = true},")
must_make("{.name = \"dry_run\", .form = PARAM_FLAG},")
must_make("{\"paused\", CELL_BOOL | CELL_WIDE},")
must_make("{\"at\", CELL_TIME},")
must_make("{\"key\", &VERB_KEYS, true},")
must_make("{\"jobs\", &VERB_GOOD, false},")
must_make(".none = \"no \\\"{name}\\\"\"")
must_make(".method = \"POST\"")

embed(plain "-- params: text\nSELECT $1\n") # a statement of claimctl's own C
file(READ ${FOLDER}/list.c source)
if(source MATCHES "VERB_PLAIN")
    message(SEND_ERROR "plain: no verb, since nothing is shown of it")
endif()

must_refuse(type "-- shows: name textt\nSELECT 1\n" "column name: 'textt' is none of")
must_refuse(no_type "-- shows: name\nSELECT 1\n" "column name: of which type\\?")
must_refuse(param "-- params: text\n-- shows: name text\nSELECT 1\n" "parameter 'text': must be NAME TYPE")
must_refuse(form "-- params: name text quue\n-- shows: name text\nSELECT 1\n" "parameter name: 'quue' is no form")
must_refuse(key "-- show: name text\n-- shows: name text\nSELECT 1\n" "unknown key 'show'")
must_refuse(both "-- shows: name text\n-- tables: names\n-- then: names\nSELECT 1\n" "either `tables` or `then`")
must_refuse(table "-- shows: name text\n-- tables: a b\nSELECT 1\n" "table 'a b': must be")
