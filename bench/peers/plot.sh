#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# plot.sh RESULT.json: draws the output of `./dev bench peers` as SVG on stdout: jobs per second of the drains,
# each system at its best (claimd has one setting), durable ones darker. Needs jq and gnuplot.
set -eu
data=$(mktemp)
trap 'rm -f "$data"' EXIT
jq -r '[.peers[] | select(.work == "drain" and (.name == "claimd" or .settings != "default"))] | sort_by(.jobs_per_s)[]
    | [.name + (if .settings == "safe" then ", safe" else "" end), .jobs_per_s, if .is_durable then 1 else 2 end] | @tsv' \
    "$1" >"$data"
rows=$(wc -l <"$data")
gnuplot <<EOF
set terminal svg size 760,$((rows * 26 + 90)) font "sans-serif,12" background "white"
set datafile separator "\t"
set linetype 1 linecolor rgb "#1f5f8b"
set linetype 2 linecolor rgb "#c9d6df"
set title "No-op jobs per second, all processes on the same two cores\nlight: jobs that were acknowledged are lost with the machine"
set style fill solid
set xrange [0:*]
set yrange [-0.6:$rows - 0.4]
set xtics format "%.0s%c"
set rmargin 9
set grid xtics
set border 1
set tics nomirror scale 0.5
unset key
plot "$data" using 2:0:(0):2:(\$0 - 0.36):(\$0 + 0.36):3:ytic(1) with boxxyerror linecolor variable, \
     "$data" using 2:0:(sprintf(" %.0f", \$2)) with labels left
EOF
