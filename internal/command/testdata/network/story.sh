#!/bin/sh
# story.sh HEED DIR: three machines made of network namespaces, in one that has no
# link to anywhere else (`unshare --net`), so that nothing here leaves it.
#
#	bot 172.20.0.2 -- 172.20.0.1 heed 203.0.114.1 -- 203.0.114.2 site
#
# The bot has no route but the one to heed's own network. The last line of what
# each step prints goes to stdout, after the step's name.
set -eu
heed=$1
cd "$2"

mount -t tmpfs none /run # ip keeps its names of namespaces there
ip link set lo up
for machine in bot site; do
	ip netns add $machine
	ip -n $machine link set lo up
	ip link add to-$machine type veth peer name eth0 netns $machine
	ip link set to-$machine up
	ip -n $machine link set eth0 up
done
ip addr add 172.20.0.1/24 dev to-bot
ip addr add 203.0.114.1/24 dev to-site
ip -n bot addr add 172.20.0.2/24 dev eth0
ip -n site addr add 203.0.114.2/24 dev eth0

mkdir www state
chmod 700 state
printf 'User-agent: *\nDisallow: /private\n' >www/robots.txt
echo 'the page' >www/page.html
echo 'secret' >www/private
ip netns exec site /usr/bin/python3 -u -m http.server --bind 203.0.114.2 --directory www 80 >site.log 2>&1 &

HEED_STATE=$PWD/state HEED_LISTEN=0.0.0.0:3128 HEED_CLIENTS=172.16.0.0/12 "$heed" serve 2>heed.log &
serving=$!

# await COMMAND...: until it succeeds, for half a minute.
await() {
	for _ in $(seq 300); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "this never came: $*"
	cat heed.log site.log
	exit 1
}
await ip netns exec bot curl -sSf http://172.20.0.1:3128/ca.pem
await curl -sSf --noproxy '*' http://203.0.114.2/page.html

# step NAME MACHINE COMMAND...
step() {
	name=$1 machine=$2
	shift 2
	said=$(ip netns exec "$machine" env http_proxy= "$@" 2>&1 | tail -n 1) || true
	echo "$name: $said"
}
proxy=http://172.20.0.1:3128
step routes bot ip route
step directly bot curl -sS --max-time 5 http://203.0.114.2/page.html
step past-the-libraries bot /usr/bin/python3 -c 'import socket; socket.create_connection(("203.0.114.2", 80), 5)'
step through-heed bot curl -sS -x $proxy http://203.0.114.2/page.html
step refused bot curl -sS -o answer -w '%{http_code}' -x $proxy http://203.0.114.2/private
step into-the-own-network bot curl -sS -o answer -w '%{http_code}' -x $proxy http://172.20.0.1:22/
step another-network site curl -sS -o answer -w '%{http_code}' -x http://203.0.114.1:3128 http://203.0.114.2/page.html
echo "the site was asked for: $(sed -n 's/^[^ ]* - - .*"\(GET [^ ]*\) .*/\1/p' site.log | sort | uniq -c | tr -s ' \n' ' ')"
kill "$serving"
wait "$serving" # the log is complete
echo "recorded: $(grep -c '"verdict":"allow"' heed.log) allowed, $(grep -c '"verdict":"refuse"' heed.log) refused"
