#!/bin/sh
# story.sh HEED DIR redirect|tproxy COUNT: a gateway made of network namespaces, in one
# that has no link to anywhere else (`unshare --net`), so that nothing here leaves it.
#
#	bot 172.20.0.2 -- 172.20.0.1 gateway with heed 203.0.114.1 -- 203.0.114.2 site
#
# The bot knows no proxy: no variable is set, and its default route leads to the gateway.
# DIR has cert.pem and key.pem of site.test, their CA ca.pem, and the rules. The last line of what each step prints goes to stdout, after the step's name.
# COUNT connections are made one after the other at the end.
set -eu
heed=$1 mode=$3 count=$4 say=$(realpath "$(dirname "$0")")/say.py
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
ip addr add fd00:20::1/64 dev to-bot nodad
ip addr add 203.0.114.1/24 dev to-site
ip addr add 2001:db8:114::1/64 dev to-site nodad
ip -n bot addr add 172.20.0.2/24 dev eth0
ip -n bot addr add fd00:20::2/64 dev eth0 nodad
ip -n bot route add default via 172.20.0.1
ip -n bot -6 route add default via fd00:20::1
ip -n site addr add 2001:db8:114::2/64 dev eth0 nodad
for last in 2 3 4 5 6 7 8 9 10 11; do # ten addresses
	ip -n site addr add 203.0.114.$last/24 dev eth0
	echo "203.0.114.$last site.test" >>hosts
done
ip -n site route add default via 203.0.114.1
ip -n site -6 route add default via 2001:db8:114::1
echo '203.0.114.2 moved.test other.test' >>hosts
mount --bind hosts /etc/hosts
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1

# The lines of `heed help gateway`.
nft -f rules
if [ "$mode" = tproxy ]; then
	ip rule add fwmark 1 lookup 100
	ip route add local default dev lo table 100
	ip -6 rule add fwmark 1 lookup 100
	ip -6 route add local default dev lo table 100
fi

mkdir www state
chmod 700 state
printf 'User-agent: *\nDisallow: /private\n' >www/robots.txt
echo 'the page' >www/page.html
echo 'secret' >www/private
cat >nginx.conf <<'EOF'
daemon off;
user root;
pid nginx.pid;
worker_processes 1;
error_log nginx.log;
events { worker_connections 4096; }
http {
	log_format hits '$request $host';
	access_log hits.log hits;
	server {
		listen 80; listen [::]:80; listen 8080; listen 443 ssl http2; listen [::]:443 ssl http2;
		ssl_certificate cert.pem; ssl_certificate_key key.pem;
		root www;
		charset off;
	}
}
EOF
ip netns exec site nginx -p "$PWD" -c "$PWD/nginx.conf" 2>nginx.err &

cat >proxy.toml <<EOF
listen = "127.0.0.1:3128"
[https]
[access]
clients = ["172.20.0.0/24", "fd00:20::/64", "127.0.0.0/8", "203.0.114.1"]
allow_to = ["203.0.114.0/24", "2001:db8:114::/64"]
[upstream]
ca_file = "ca.pem"
[limits]
connect_time = "5s"
handshake_time = "5s"
[log]
format = "json"
[[listener]]
address = ":3129"
mode = "$(test $mode = redirect && echo transparent || echo tproxy)"
EOF
HEED_STATE=$PWD/state
export HEED_STATE
"$heed" serve 2>heed.log &
pid=$!

# await COMMAND...: until it succeeds, for half a minute.
await() {
	for _ in $(seq 300); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	echo "this never came: $*"
	cat heed.log nginx.err nginx.log
	exit 1
}
await curl -sSf --noproxy '*' http://203.0.114.2/page.html
await curl -sSf --noproxy '*' http://127.0.0.1:3128/ca.pem
await ip netns exec bot curl -sSf http://site.test/page.html
curl -sS --noproxy '*' http://127.0.0.1:3128/ca.pem >heed-ca.pem
: >hits.log

# step NAME COMMAND...: what the bot gets
step() {
	name=$1
	shift
	said=$(ip netns exec bot timeout 600 "$@" 2>&1 </dev/null | tail -n 1 | tr -d '\r') || true
	echo "$name: $said"
}
get="curl -sS --max-time 120 --cacert heed-ca.pem"
status="$get -o answer -w %{http_code}/%{http_version}"
step page $get http://site.test/page.html
step refused $status http://site.test/private
step https-h1 $status --http1.1 https://site.test/page.html
step https-h1-refused $status --http1.1 https://site.test/private
step https-h2 $status --http2 https://site.test/page.html
step https-h2-refused $status --http2 https://site.test/private
step prior-knowledge $status --http2-prior-knowledge http://site.test/page.html
step prior-knowledge-refused $status --http2-prior-knowledge http://site.test/private
step ipv6 $status --resolve 'site.test:80:[2001:db8:114::2]' http://site.test/page.html
step ipv6-refused $status --resolve 'site.test:443:[2001:db8:114::2]' https://site.test/private
step other-port $status http://site.test:8080/page.html
for last in 2 3 4 5 6 7 8 9 10 11; do
	step "address-$last" $status --resolve site.test:80:203.0.114.$last http://site.test/private
done
step another-name-at-an-address-of-no-site $status --resolve moved.test:80:203.0.114.66 http://moved.test/page.html
step port-in-host $status -H 'Host: site.test:8080' http://site.test/page.html
step address-in-host $status -H 'Host: 203.0.114.9' http://203.0.114.2/page.html
step hello-against-host $status --http1.1 -H 'Host: other.test' https://site.test/page.html
step no-name $status http://203.0.114.2/private
step heed-itself $status http://172.20.0.1:3129/page.html
step nothing /usr/bin/python3 -I $say 203.0.114.2:80 0 ''
step slowly /usr/bin/python3 -I $say 203.0.114.2:443 1 '\x16\x03\x01\x00\x10\x01\x00\x00\x0c'
step garbage /usr/bin/python3 -I $say 203.0.114.2:8443 0 '\x00\x01\x02garbage\n'
step quic /usr/bin/python3 -I $say udp/203.0.114.2:443 0 'hello'
[ "$count" = 0 ] || step many /usr/bin/python3 -I $say many/203.0.114.2:80 0 "$count"
[ "$mode" = tproxy ] || ! setpriv --reuid 1002 --clear-groups true || {
	nft -f machine-rules
	chmod 755 . heed-ca.pem
	user() { setpriv --reuid "$1" --clear-groups curl -sS --max-time 120 --noproxy '*' --cacert heed-ca.pem -o /dev/null -w '%{http_code}' "$2" 2>&1 | tail -n 1; }
	echo "user-1002: $(user 1002 http://site.test/page.html) $(user 1002 https://site.test/private) $(user 1002 https://site.test/page.html)"
	echo "user-1003-is-not-redirected: $(user 1003 http://203.0.114.2/private)"
}
echo "the site was asked for: $(sort hits.log | uniq -c | tr -s ' \n' ' ')"
id=$(grep /private heed.log | sed -n 's/.*"id":"\([^"]*\)".*/\1/p' | head -n 1)

echo "why: $("$heed" why "$id" 2>&1 | tr '\n' ' ')"
echo "status: $("$heed" status 2>&1 | grep 'redirected to' | tr -s ' ')"
kill $pid
wait $pid || true
echo "closed: $(ip netns exec bot curl -sS --max-time 3 http://site.test/page.html 2>&1 | tail -n 1)"
echo "verify: $("$heed" audit verify 2>&1 | tail -n 1 | sed 's/^ *//')"
