#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_dashboard.sh STEP: of the Grafana dashboard: shape, expressions, names.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
board=$root/deploy/grafana/claimd.json
. "$root/tests/deploy/lib.sh"
need jq jq

# As Prometheus gets them: Grafana's variables filled in.
expressions() {
    # shellcheck disable=SC2016  # jq's and Grafana's own
    jq -r '.panels[] | .targets[]?.expr' "$board" |
        sed -e 's/\$__rate_interval/5m/g' -e 's/\$\(cluster\|queue\|instance\)/.*/g'
}

case $1 in
    shape)
        jq -e '.schemaVersion >= 36 and .uid == "claimd" and
            ([.templating.list[].name] == ["datasource", "cluster", "queue", "instance"])' "$board" >/dev/null ||
            fail "schema, uid or variables are not what they should be"
        jq -e '[.panels[].id] | length > 0 and length == (unique | length)' "$board" >/dev/null ||
            fail "two panels have one id"
        jq -e 'all(.panels[] | select(.type != "row");
            .title != "" and .description != "" and (.targets | length) > 0 and
            all(.targets[]; .expr != "" and .datasource.uid == "${datasource}"))' "$board" >/dev/null ||
            fail "a panel lacks a title, a description, an expression or the data source's variable"
        # No two panels on one spot.
        jq -e '[.panels[].gridPos | . as $g | range(.x; .x + .w) as $x | range($g.y; $g.y + $g.h) as $y | [$x, $y]] |
            length == (unique | length) and all(.[]; .[0] < 24)' "$board" >/dev/null || fail "panels overlap"
        ;;
    expressions) # they parse: as rules, since promtool takes nothing smaller
        need promtool prometheus
        file=$(mktemp)
        trap 'rm -f "$file"' EXIT
        expressions | awk '
            BEGIN { print "groups: [{name: dashboard, rules: [" }
            { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); printf "{record: \"e%d\", expr: \"%s\"},\n", NR, $0 }
            END { print "]}]" }' >"$file"
        promtool check rules "$file" || { cat "$file"; fail "an expression does not parse"; }
        ! expressions | grep '\$' || fail "a variable that nobody sets"
        ;;
    names)
        check_names "$(expressions; jq -r '.templating.list[].query | if type == "object" then .query else . end' "$board")"
        # What is documented is shown, too.
        documented | sed 's/ .*//' | while read -r name; do
            expressions | grep -q "\b$name" || fail "$name of docs/metrics.md is on no panel"
        done
        ;;
    *)
        fail "unknown step '$1'"
        ;;
esac
