# SPDX-License-Identifier: Apache-2.0
# The table of docs/config.md, which is made from the table of options, as scdoc.
function literal(text) {
    gsub(/[\\*_#.~\[\]|<>`+-]/, "\\\\&", text)
    return text
}
function cell(text) {
    gsub(/^[ `]+|[ `]+$/, "", text)
    return text
}
BEGIN { FS = " \\| " }
/^\| `/ {
    sub(/^\| /, "")
    sub(/ \|$/, "")
    help = $5
    is_reloaded = sub(/ ↻$/, "", help)
    gsub(/`/, "", help)
    printf "*%s*", literal(cell($1))
    if (is_reloaded) printf " (_reloaded_)"
    printf "\n\t%s\n\n\tAllowed: %s. ", literal(help), literal($4)
    if (cell($3) != "") printf "Default: %s. ", literal(cell($3))
    printf "Environment: %s.\n\n", literal(cell($2))
}
