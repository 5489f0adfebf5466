# SPDX-License-Identifier: Apache-2.0
# Checks that the documents repeat the tables of sql/job_flags.txt and sql/errors.txt. Run as cmake -DROOT=… -P.

# Checks that each row of the file, written as `replacement`, is a line of the page, and that the page has no
# other row of that form.
function(compare file pattern replacement page row_of_page)
    file(STRINGS ${ROOT}/${file} rows REGEX "${pattern}")
    file(STRINGS ${ROOT}/${page} lines REGEX "${row_of_page}")
    string(REPLACE "\\;" "," rows "${rows}") # or a list would end there
    string(REPLACE "\\;" "," lines "${lines}")
    list(TRANSFORM rows REPLACE "${pattern}" "${replacement}")
    if(rows STREQUAL "" OR NOT rows STREQUAL lines)
        string(REPLACE ";" "\n" rows "${rows}")
        string(REPLACE ";" "\n" lines "${lines}")
        message(SEND_ERROR "${page} has other rows than ${file}:\n${lines}\n\ninstead of\n\n${rows}")
    endif()
endfunction()

compare(sql/job_flags.txt "^([|] [0-9]+ [|] [a-z_]+ [|].*)$" "\\1" docs/interfaces.md "^[|] [0-9]+ [|] [a-z_]+ [|]")
compare(sql/errors.txt "^[|] (CL[0-9]+) [|] [a-z_]+ [|] [A-Z]+ [|](.*)$" "| `\\1` |\\2" docs/guide/sql.md "^[|] `CL[0-9]+` [|]")
