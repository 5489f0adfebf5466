# SPDX-License-Identifier: Apache-2.0
# gnuplot -e "name = 'throughput'" plots.gp, in a folder of results: NAME.dat becomes NAME.svg.
set terminal svg size 960,520 font "sans,13" background "white"
set output name . ".svg"
set grid ytics linecolor rgb "#dddddd"
set border 3
set rmargin 8
set tics nomirror
set style fill solid 0.85 border -1
set boxwidth 0.8
set yrange [0:*]
if (name eq "scale") {
    stats name . ".dat" using 1 nooutput
    set title "Jobs per second, by the number of workers or clients"
    set logscale x 2
    set key outside bottom center horizontal
    plot for [i = 0 : STATS_blocks - 1] name . ".dat" index i using 1:2 with linespoints linewidth 2 title columnheader(1)
} else {
    set style data histograms
    set style histogram clustered gap 1
    set xtics rotate by -25 scale 0
    if (name eq "start") {
        set title "From an insert's commit to its job's start, ms"
        set logscale y
        set yrange [0.05:*]
        plot name . ".dat" using 2:xtic(1) title "p50", "" using 3 title "p99"
    } else if (name eq "realistic") {
        set title "CPU of all processes per job, us"
        plot name . ".dat" using 2:xtic(1) notitle
    } else {
        set title "No-op jobs per second, from a full queue to an empty one"
        plot name . ".dat" using 2:xtic(1) notitle
    }
}
