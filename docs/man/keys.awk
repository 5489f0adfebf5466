# SPDX-License-Identifier: Apache-2.0
# The tables of docs/config.md, which are made from the table of options, as scdoc.
function literal(text) {
    gsub(/[\\*_#.~\[\]|<>`+-]/, "\\\\&", text)
    return text
}
function cell(text) {
    gsub(/^[ `]+|[ `]+$/, "", text)
    return text
}
BEGIN { FS = " \\| " }
/^## / {
    print "# " toupper(substr($0, 4)) "\n"
    is_expert = 1
    next
}
is_expert && /^[^|]/ {
    gsub(/`/, "")
    print literal($0)
}
is_expert && /^$/ { print }
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
