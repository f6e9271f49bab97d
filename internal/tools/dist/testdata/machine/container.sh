#!/bin/sh
# An administrator installs, starts and purges heed in a container that has no systemd. The
# package is /root/heed.deb.
set -eu
cd /
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

fail() {
	echo "FAILED: $*"
	exit 1
}

# says PART COMMAND...: what the command prints contains PART.
says() {
	part=$1
	shift
	got=$("$@" 2>&1) || :
	case $got in
	*"$part"*) ;;
	*) fail "$* printed '$got' without '$part'" ;;
	esac
}

[ ! -e /usr/bin/systemctl ] || fail "systemd is installed"
dpkg -i /root/heed.deb
[ "$(stat -c '%U %a' /var/lib/heed)" = "heed 700" ] || fail "the state directory is not the user's"

nohome() { setpriv --reuid nobody --regid nogroup --clear-groups env -i PATH="$PATH" HOME=/nonexistent "$@"; }
says "Run: sudo -u heed heed status" nohome heed status
says "heed is not running in /var/lib/heed" heed status

setpriv --reuid heed --regid heed --init-groups env -i PATH="$PATH" HEED_STATE=/var/lib/heed \
	heed serve --config /etc/heed/proxy.toml &
pid=$!
until heed status >/dev/null 2>&1; do
	kill -0 $pid || fail "heed does not start"
done
says "listens on     127.0.0.1:3128" heed status
says "may not read that of the service, /var/lib/heed" nohome heed status
kill $pid
wait $pid || fail "heed stopped with $?"
dpkg --purge heed
[ -e /var/lib/heed/audit.db ] || fail "the record is gone"
echo PASSED
