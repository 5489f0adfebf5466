#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_alerts.sh STEP: of the Prometheus rules: check, test, config, runbook, commands, cases, names.
# shellcheck disable=SC2016  # backticks of Markdown
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
rules=$root/deploy/prometheus/claimd.rules.yml
tests=$root/deploy/prometheus/claimd.rules_test.yml
. "$root/tests/deploy/lib.sh"

alerts=$(sed -n 's/^ *- alert: //p' "$rules")
[ "$(printf '%s\n' "$alerts" | wc -l)" -ge 10 ] || fail "no alerts found in $rules"

case $1 in
    check)
        need promtool prometheus
        promtool check rules "$rules"
        ;;
    test)
        need promtool prometheus
        promtool test rules "$tests"
        ;;
    config)
        need promtool prometheus
        promtool check config "$root/deploy/prometheus/prometheus.yml"
        promtool check config "$root/deploy/prometheus/compose.yml"
        ;;
    runbook) # each alert has a severity and a section that its runbook_url names
        for alert in $alerts; do
            grep -q "^### $alert\$" "$root/docs/operations.md" || fail "docs/operations.md: no section '### $alert'"
            anchor=$(printf %s "$alert" | tr '[:upper:]' '[:lower:]')
            text=$(sed -n "/- alert: $alert\$/,/runbook_url/p" "$rules")
            for part in "severity: \(critical\|warning\)}" "summary: ." "description: ." "docs/operations.md#$anchor\$"; do
                printf '%s\n' "$text" | grep -q "$part" || fail "$alert: nothing like '$part'"
            done
        done
        sed -n 's/^### \(Claimd.*\)/\1/p' "$root/docs/operations.md" | while read -r alert; do
            grep -q -- "- alert: $alert\$" "$rules" || fail "docs/operations.md: $alert is no alert"
        done
        ;;
    commands) # each command of the runbook is one that $2, a claimctl, takes
        commands=$(sed -n '/^### Claimd/,/^## /p' "$root/docs/operations.md" | grep -o '`claimctl [^`]*`' | tr -d '`' |
            sed -e 's/^claimctl //' -e 's/ID…\?$/1/' -e 's/NAME$/name/' | sort -u)
        [ -n "$commands" ] || fail "no commands found"
        printf '%s\n' "$commands" | while read -r words; do
            # shellcheck disable=SC2086  # words
            "$2" $words --help >/dev/null || fail "docs/operations.md: claimctl $words"
        done
        ;;
    cases) # each alert is seen to fire and to be quiet
        awk -v alerts="$alerts" '
            /^ *alertname:/ { name = $2 }
            /^ *exp_alerts: *\[\]/ { quiet[name] = 1; next }
            /^ *exp_alerts:/ { fires[name] = 1 }
            END {
                n = split(alerts, list, "\n")
                for (i = 1; i <= n; i++) {
                    if (!(list[i] in quiet)) { print list[i] ": no case in which it is quiet"; bad = 1 }
                    if (!(list[i] in fires)) { print list[i] ": no case in which it fires"; bad = 1 }
                }
                exit bad
            }' "$tests"
        ;;
    names) # each metric is a documented one
        check_names "$(sed -e 's/#.*//' "$rules" "$tests" | grep -v 'description:\|summary:')"
        ;;
    *)
        fail "unknown step '$1'"
        ;;
esac
