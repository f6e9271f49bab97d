#!/bin/sh
# An administrator installs, upgrades, removes and purges heed on a machine with systemd.
# The packages are /root/first.deb and /root/second.deb.
set -eu
cd /

step() { echo "== $*"; }

fail() {
	echo "FAILED: $*"
	systemctl status heed --no-pager -l || :
	journalctl -u heed -n 30 --no-pager -o cat || :
	exit 1
}

# is WANT COMMAND...: the command prints WANT.
is() {
	want=$1
	shift
	got=$("$@" 2>&1) || :
	[ "$got" = "$want" ] || fail "$* printed '$got', not '$want'"
}

# says PART COMMAND...: what the command prints contains PART, within a minute: a decision
# comes into the record after its answer.
says() {
	part=$1
	shift
	for _ in $(seq 60); do
		got=$("$@" 2>&1) || :
		case $got in
		*"$part"*) return 0 ;;
		esac
		sleep 1
	done
	fail "$* printed '$got' without '$part'"
}

ask() { curl -sS -o /dev/null -w '%{http_code}' -x http://127.0.0.1:3128 "http://127.0.0.1:8080$1"; }

property() { systemctl show heed -p "$1" --value; }

ip link set lo up 2>/dev/null || :
perl -MIO::Socket::INET -e '
	my $l = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8080", Listen => 5, ReuseAddr => 1) or die;
	while (my $c = $l->accept) {
		my $line = <$c>; while (<$c>) { last if /^\r?$/ }
		my $body = $line =~ m{ /robots.txt } ? "User-agent: *\nDisallow: /private\n" : "a page\n";
		print $c "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
		close $c;
	}' &
useradd -m anna

step install
dpkg -i /root/first.deb
is active systemctl is-active heed
is enabled systemctl is-enabled heed
is heed property User
says 'listening on 127.0.0.1:3128' property StatusText
systemd-analyze security heed --threshold=20 --no-pager >/dev/null || fail 'its exposure is 2.0 or more'
is '700 heed heed' stat -c '%a %U %G' /var/lib/heed

step serve
is 200 ask /page
is 403 ask /private/page
says 'CapEff:	0000000000000000' cat /proc/"$(property MainPID)"/status

step 'commands, as root, as heed and as another user'
says 'using the state directory of the service, /var/lib/heed' heed status
says 'requests  2: 1 allowed, 1 refused by rule' heed audit report
says 'Run: sudo -u heed heed status' runuser -u anna -- heed status
says 'Run: sudo -u heed heed audit report' runuser -u anna -- heed audit report
runuser -u heed -- heed status --ready --quiet || fail 'heed status as its user'
[ "$(find /var/lib/heed ! -user heed)" = '' ] || fail 'a command of root left files of root'
[ ! -e /root/.local/state/heed ] || fail 'a command of root made a state directory'

step reload
sed -i 's/^drain = "30s"/drain = "7s"/' /etc/heed/proxy.toml
systemctl reload heed || fail 'a reload of good settings'
sed -i 's/^drain = "7s"/drain = 7/' /etc/heed/proxy.toml
if systemctl reload heed; then fail 'a reload of bad settings succeeds'; fi
says 'the settings were not reloaded: /etc/heed/proxy.toml:' property StatusText
is active systemctl is-active heed
sed -i 's/^drain = 7/drain = "7s"/' /etc/heed/proxy.toml
systemctl reload heed || fail 'a reload of repaired settings'
is 'listening on 127.0.0.1:3128' property StatusText

step watchdog
mkdir -p /run/systemd/system/heed.service.d
printf '[Service]\nWatchdogSec=3s\n' >/run/systemd/system/heed.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart heed
sleep 8
is 0 property NRestarts
kill -STOP "$(property MainPID)"
for _ in $(seq 60); do
	[ "$(property NRestarts)" = 0 ] || break
	sleep 1
done
is 1 property NRestarts
rm -r /run/systemd/system/heed.service.d
systemctl daemon-reload
systemctl restart heed
is 200 ask /page

step upgrade
kept=$(sha256sum /etc/heed/proxy.toml /var/lib/heed/ca.pem /var/lib/heed/ca-key.pem /var/lib/heed/name)
before=$(property MainPID)
dpkg -i /root/second.deb
is active systemctl is-active heed
[ "$before" != "$(property MainPID)" ] || fail 'the old program still runs'
echo "$kept" | sha256sum -c --quiet || fail 'the upgrade changed settings or state'
says 'heed v0.0.2 (' heed --version
says 'whole    /var/lib/heed/audit.db' heed audit verify
says 'requests  3:' heed audit report

step 'remove, and install again'
dpkg -r heed
is inactive systemctl is-active heed
echo "$kept" | sha256sum -c --quiet || fail 'removing changed settings or state'
dpkg -i /root/second.deb
is active systemctl is-active heed
systemctl disable --now heed
dpkg -i /root/first.deb
is disabled systemctl is-enabled heed
is inactive systemctl is-active heed
systemctl enable --now heed

step 'the page of the manual, and completions'
is /usr/share/man/man1/heed.1.gz man -w heed
# shellcheck disable=SC2016 # bash expands it
is 'replay recheck report' bash -c '. /usr/share/bash-completion/completions/heed; COMP_WORDS=(heed audit re); COMP_CWORD=2; _heed; echo ${COMPREPLY[*]}'

step purge
roots=$(sha256sum /etc/ssl/certs/ca-certificates.crt)
echo secret >/etc/heed/admin-token
says 'the record of decisions is left in /var/lib/heed' dpkg -P heed
[ ! -e /etc/heed ] || fail 'settings are left'
[ "$(find /var/lib/heed -mindepth 1 ! -name 'audit*')" = '' ] || fail "left is $(ls /var/lib/heed)"
[ -s /var/lib/heed/audit.db ] || fail 'the record is gone'
[ "$(find /etc/systemd /usr/lib/systemd -name '*heed*')" = '' ] || fail 'units are left'
echo "$roots" | sha256sum -c --quiet || fail 'the trust store was changed'

step 'install again: it continues the record'
dpkg -i /root/second.deb
is active systemctl is-active heed
says 'requests  3:' heed audit report
says 'whole    /var/lib/heed/audit.db' heed audit verify
echo PASSED
