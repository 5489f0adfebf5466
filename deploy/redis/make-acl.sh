#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fills in claimd.acl: make-acl.sh USER=PASSWORD_FILE… prints an ACL file for `aclfile` of redis.conf. It holds hashes, no
# password. A user may be named twice: then both passwords are valid, while one is being replaced by the other. Users of the template that are not named are left out. TEMPLATE=FILE in the environment: another template.
set -eu

die() {
    echo "make-acl.sh: $*" >&2
    exit 2
}

template=${TEMPLATE:-$(dirname "$0")/claimd.acl}
[ $# -gt 0 ] || die "usage: make-acl.sh USER=PASSWORD_FILE…, users: $(sed -n 's/^user \(claimd_[a-z]*\) .*/\1/p' "$template" | tr '\n' ' ')"

hashes=
for pair in "$@"; do
    user=${pair%%=*}
    file=${pair#*=}
    case $pair in *=*) ;; *) die "'$pair': expected USER=PASSWORD_FILE" ;; esac
    grep -q "^user $user on " "$template" || die "'$user': no such user in $template"
    # As the daemons read it: one line, without its end.
    password=$(cat "$file") || die "$user: cannot read the password in '$file'"
    [ "$(printf %s "$password" | tr -d '\r' | wc -l)" -eq 0 ] || die "$user: '$file' has more than one line"
    password=${password%"$(printf '\r')"}
    [ -n "$password" ] || die "$user: '$file' holds no password"
    hashes="$hashes $user $(printf %s "$password" | sha256sum | cut -d ' ' -f 1)"
done

# A line that begins with a space goes on with the line before it.
awk -v hashes="$hashes" '
    function flush() {
        if (line ~ /@PASSWORD@/) {
            split(line, word, " ")
            if (!(word[2] in hash)) { line = "" }
            sub(/@PASSWORD@/, hash[word[2]], line)
        }
        if (line != "") { print line }
        line = ""
    }
    BEGIN {
        n = split(hashes, h, " ")
        for (i = 1; i < n; i += 2) {
            before = h[i] in hash ? hash[h[i]] " #" : ""
            hash[h[i]] = before h[i + 1]
        }
    }
    /^#/ || /^[[:space:]]*$/ { next }
    /^[[:space:]]/ { sub(/^[[:space:]]+/, " "); line = line $0; next }
    { flush(); line = $0 }
    END { flush() }
' "$template"
