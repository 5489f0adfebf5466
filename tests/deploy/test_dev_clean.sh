#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ./dev clean, in a place of its own and over a Docker that is a script: which folders and containers it removes, and
# which it leaves alone. And the last line of ./dev test, which says what was not tested.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/deploy/lib.sh"
dir=$(mktemp -d)
holders=
stop() {
    # shellcheck disable=SC2086  # words
    [ -z "$holders" ] || kill $holders
    rm -rf "$dir"
}
trap stop EXIT
mkdir "$dir/bin" "$dir/tmp"
cp "$root/dev" "$dir/dev"
cat >"$dir/bin/docker" <<END
#!/bin/sh
case "\$*" in
    "ps -aq"*claimd-fresh*) echo container ;;
    *) echo "\$*" >>"$dir/docker" ;;
esac
END
chmod 0755 "$dir/bin/docker"
export PATH="$dir/bin:$PATH" TMPDIR="$dir/tmp"

# folder NAME FILE: holds that file
folder() {
    mkdir -p "$TMPDIR/claimd-$1"
    mkdir -p "$(dirname "$TMPDIR/claimd-$1/$2")"
    : >"$TMPDIR/claimd-$1/$2"
}
folder killed run.lock
folder lives1 run.lock
folder failed run.kept
folder young1 data/PG_VERSION
folder older1 pg/data/PG_VERSION
folder older2 pg/data/PG_VERSION
folder backup file
(exec 9<"$TMPDIR/claimd-lives1/run.lock" && flock 9 && exec sleep 600) &
holders=$!
(cd "$TMPDIR/claimd-older2/pg" && exec sleep 600) &
holders="$holders $!"
touch -d '2 days ago' "$TMPDIR/claimd-older1" "$TMPDIR/claimd-older2" "$TMPDIR/claimd-backup"
until ! flock -n "$TMPDIR/claimd-lives1/run.lock" true && [ "$(readlink "/proc/${holders##* }/cwd")" != "$PWD" ]; do
    sleep 0.05
done

"$dir/dev" clean >"$dir/said"
left=$(cd "$TMPDIR" && echo claimd-*)
[ "$left" = 'claimd-backup claimd-lives1 claimd-older2 claimd-young1' ] || fail "left: $left"
grep -q "claimd-killed" "$dir/said" || fail "it doesn't say what it removed: $(cat "$dir/said")"
grep -qx 'rm -fv container' "$dir/docker" || fail "asked of Docker: $(cat "$dir/docker")"

cat >"$dir/report" <<'END'
<testsuite>
	<testcase name="test_one" classname="test_one" time="0.1" status="run">
		<system-out>SKIPPED: not this one
		</system-out>
	</testcase>
	<testcase name="test_two" classname="test_two" time="0.1" status="notrun">
		<skipped message="SKIP_RETURN_CODE=77"/>
		<system-out>SKIPPED: &quot;Go&quot; isn&apos;t installed
		</system-out>
	</testcase>
</testsuite>
END
sed -n '/^say_skipped() {$/,/^}$/p' "$root/dev" >"$dir/part"
# shellcheck disable=SC1091
said=$(. "$dir/part" && say_skipped "$dir/report")
[ "$said" = "dev: NOT TESTED on this machine: test_two: \"Go\" isn't installed" ] || fail "said: $said"
