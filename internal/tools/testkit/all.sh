#!/bin/sh
# All tests and checks of heed, from a fresh clone on a machine that has Go.
#
#	sh internal/tools/testkit/all.sh
#
# Tests use real clients and a real web server. What of them is missing is
# installed: Debian packages through apt-get, and from npm a Node that heeds proxy
# variables, the web framework express, axe-core and web-bot-auth, into .build/ (which
# git ignores).
# What runs in the long form only, with HEED_TEST_FULL=1, is named at the end.
set -eu
umask 022 # heed trusts no directory that others may write to, and tests make some
cd "$(dirname "$0")/../../.."

# Debian 12 has Node 18, which ignores proxy variables; 24 can use them.
node_version=24.21.0
express_version=5.3.0
axe_version=4.14.1
web_bot_auth_version=0.1.3
playwright_version=1.65.1
puppeteer_version=25.16.0
clients="ky@1.14.3 superagent@10.4.2 bent@7.3.12 @hapi/wreck@18.1.2 got-scraping@4.2.1 @crawlee/http@3.18.1 needle@3.5.0 request@2.88.2 phin@4.0.0 single-file-cli@2.0.83"
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

begun=$(date +%s)

fail() {
	printf '\nNOT PASSED: %s\n' "$1" >&2
	exit 1
}

# step NAME COMMAND... runs one check under a heading.
step() {
	name=$1
	shift
	printf '\n== %s\n' "$name"
	"$@" || fail "$name"
}

# have COMMAND: some servers lie outside an ordinary user's PATH.
have() {
	command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ]
}

# lacks PACKAGE TEST...: the package is missing unless the test succeeds.
missing=
lacks() {
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}

can_compile_c() {
	echo 'int main(void) { return 0; }' | gcc -x c -o /dev/null -
}

find_missing() {
	missing=
	lacks ca-certificates test -s /etc/ssl/certs/ca-certificates.crt
	lacks gcc have gcc # for the race detector
	lacks strace have strace # for what a request costs
	lacks libc6-dev can_compile_c
	lacks git have git
	lacks nginx have nginx
	lacks prometheus have prometheus
	lacks nftables have nft
	lacks apache2-bin have apache2
	lacks redis-server have redis-server
	lacks redis-tools have redis-cli
	lacks rsync have rsync
	lacks squid have squid
	lacks haproxy have haproxy
	lacks caddy have caddy
	lacks microsocks have microsocks
	lacks curl have curl
	lacks wget have wget
	lacks python3 have python3
	lacks python3-urllib3 /usr/bin/python3 -c 'import urllib3'
	lacks python3-scrapy have scrapy
	lacks python3-pip /usr/bin/python3 -m pip --version
	lacks python3-websockets /usr/bin/python3 -c 'import websockets'
	lacks perl have perl
	lacks libwww-perl perl -MLWP::UserAgent -e 1
	lacks liblwp-protocol-https-perl perl -MLWP::Protocol::https -e 1
	lacks default-jdk-headless have javac
	lacks libtomcat10-embed-java test -e /usr/share/java/tomcat10-embed-core.jar
	lacks openssl have openssl
	lacks gnutls-bin have gnutls-cli
	lacks iproute2 have ip # for networks without a route
	lacks e2fsprogs have mkfs.ext4 # for a disk that loses its power
	lacks libnss3-tools have certutil
	lacks npm have npm
	lacks chromium have chromium
	lacks sqlite3 have sqlite3
	lacks systemd have systemd-analyze # for the unit of the packages
	lacks mandoc have mandoc
	lacks zsh have zsh
	lacks php-cli have php
	lacks php-curl php -r 'exit(function_exists("curl_init") ? 0 : 1);'
	lacks aria2 have aria2c
	lacks lftp have lftp
	lacks links have links
	lacks lynx have lynx
	lacks wget2 have wget2
	lacks httrack have httrack
	lacks w3m have w3m
	lacks python3-mechanize /usr/bin/python3 -c 'import mechanize'
	lacks python3-requests /usr/bin/python3 -c 'import requests'
	lacks python3-httplib2 /usr/bin/python3 -c 'import httplib2'
	lacks python3-aiohttp /usr/bin/python3 -c 'import aiohttp'
	lacks ruby have ruby
	[ -n "${HEED_TEST_FULL:-}" ] || return 0
	lacks busybox have busybox
	lacks lighttpd test -x /usr/sbin/lighttpd
	lacks systemd-container have systemd-nspawn # for the package on a machine of its own
	lacks debootstrap have debootstrap
	lacks r-base-core have Rscript
	lacks r-cran-curl Rscript -e 'library(curl)'
	lacks r-cran-httr Rscript -e 'library(httr)'
	lacks r-cran-httr2 Rscript -e 'library(httr2)'
	lacks wkhtmltopdf have wkhtmltopdf
	lacks whatweb have whatweb
	lacks poppler-utils have pdftotext
	lacks yt-dlp have yt-dlp
	lacks emacs-nox have emacs
	lacks ruby-mechanize ruby -rmechanize -e 1
	lacks chromium-driver have chromedriver
	lacks python3-selenium /usr/bin/python3 -c 'import selenium'
	for module in pycurl tornado treq feedparser httpx; do
		lacks "python3-$module" /usr/bin/python3 -c "import $module"
	done
	lacks python3-mechanicalsoup /usr/bin/python3 -c 'import mechanicalsoup'
	for gem in http faraday excon httparty rest-client typhoeus; do
		lacks "ruby-$gem" ruby "-r$gem" -e 1
	done
	lacks libmojolicious-perl perl -MMojo::UserAgent -e 1
	lacks lua5.1 have lua5.1
	lacks lua-http test -e /usr/share/lua/5.1/http/request.lua
	lacks html-xml-utils have hxcopy
	lacks httping have httping
	lacks elixir have elixir
	lacks erlang-inets erl -noshell -eval '{ok, _} = application:ensure_all_started(inets), halt().'
	lacks tcl-tls sh -c 'echo "exit [catch {package require tls}]" | tclsh'
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

install_missing() {
	have apt-get || fail "the tests need$missing; there is no apt-get here, so install them by other means and run this again"
	[ "$(id -u)" = 0 ] || have sudo || fail "the tests need$missing; run as root: apt-get install$missing"
	printf '\n== installing%s\n' "$missing"
	as_root apt-get -q update || fail "apt-get update"
	# Small images lack the folder that Java's packages put links into.
	as_root mkdir -p /usr/share/man/man1
	# RUNLEVEL=1: a web server is installed, not started.
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
		apt-get -q install -y --no-install-recommends -o Dpkg::Use-Pty=0 $missing >.build/apt.log 2>&1 || {
		tail -n 40 .build/apt.log
		fail "apt-get install$missing"
	}
	installed=$missing
	find_missing
	[ -z "$missing" ] || fail "after installing$installed there is still no$missing"
}

node_platform() {
	case "$(uname -s)-$(uname -m)" in
	Linux-x86_64) echo linux-x64 ;;
	Linux-aarch64) echo linux-arm64 ;;
	Darwin-arm64) echo darwin-arm64 ;;
	Darwin-x86_64) echo darwin-x64 ;;
	*) fail "npm has no Node for $(uname -s) on $(uname -m)" ;;
	esac
}

# The platform's own package holds the program; package "node" is only a
# script that fetches it.
install_node() {
	platform=$(node_platform)
	[ "$(.build/node/bin/node --version 2>/dev/null)" != "v$node_version" ] || return 0
	printf '\n== installing Node %s\n' "$node_version"
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
		--prefix .build/node "node-$platform@$node_version" || fail "npm install node-$platform@$node_version"
	mkdir -p .build/node/bin
	ln -sf "../node_modules/node-$platform/bin/node" .build/node/bin/node
	.build/node/bin/node --version >/dev/null || fail "the Node from npm does not run here"
}

install_express() {
	! grep -q "\"version\": \"$express_version\"" .build/express/node_modules/express/package.json 2>/dev/null || return 0
	printf '\n== installing express %s\n' "$express_version"
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
		--prefix .build/express "express@$express_version" || fail "npm install express@$express_version"
}

# It finds faults of accessibility in the pages of the dashboard.
install_axe() {
	! grep -q "\"version\": \"$axe_version\"" .build/axe/node_modules/axe-core/package.json 2>/dev/null || return 0
	printf '\n== installing axe-core %s\n' "$axe_version"
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
		--prefix .build/axe "axe-core@$axe_version" || fail "npm install axe-core@$axe_version"
}

# It verifies the signatures of requests, as sites do.
install_web_bot_auth() {
	! grep -q "\"version\": \"$web_bot_auth_version\"" .build/web-bot-auth/node_modules/web-bot-auth/package.json 2>/dev/null || return 0
	printf '\n== installing web-bot-auth %s\n' "$web_bot_auth_version"
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts \
		--prefix .build/web-bot-auth "web-bot-auth@$web_bot_auth_version" || fail "npm install web-bot-auth@$web_bot_auth_version"
}

# Libraries that drive the installed Chromium, for the tests in their long form.
install_browser_libraries() {
	! grep -q "\"version\": \"$playwright_version\"" .build/browsers/node_modules/playwright-core/package.json 2>/dev/null ||
		! grep -q "\"version\": \"$puppeteer_version\"" .build/browsers/node_modules/puppeteer-core/package.json 2>/dev/null || return 0
	printf '\n== installing playwright-core %s and puppeteer-core %s\n' "$playwright_version" "$puppeteer_version"
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix .build/browsers \
		"playwright-core@$playwright_version" "puppeteer-core@$puppeteer_version" || fail "npm install playwright-core puppeteer-core"
}

# Libraries that fetch, for the tests in their long form.
install_client_libraries() {
	[ "$(cat .build/clients/installed 2>/dev/null)" != "$clients" ] || return 0
	printf '\n== installing %s\n' "$clients"
	# shellcheck disable=SC2086 # a list of words
	npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix .build/clients $clients || fail "npm install $clients"
	echo "$clients" >.build/clients/installed
}

# Squid with OpenSSL, which cannot be installed beside squid, for the tests in their long form.
unpack_squid_openssl() {
	[ ! -x .build/squid/usr/sbin/squid ] || return 0
	printf '\n== unpacking squid-openssl\n'
	(cd .build && apt-get -q download squid-openssl && dpkg -x squid-openssl_*.deb squid) || fail "apt-get download squid-openssl"
}

formatted() {
	unformatted=$(find . -name '*.go' -not -path './.build/*' -exec gofmt -l {} +) || return 1
	[ -z "$unformatted" ] || {
		printf 'not formatted; run gofmt -w on:\n%s\n' "$unformatted"
		return 1
	}
}

have go || fail "there is no go here; install Go 1.26 or later"
mkdir -p .build
find_missing
[ -z "$missing" ] || install_missing
install_node
install_express
install_axe
install_web_bot_auth
[ -z "${HEED_TEST_FULL:-}" ] || install_browser_libraries
[ -z "${HEED_TEST_FULL:-}" ] || install_client_libraries
[ -z "${HEED_TEST_FULL:-}" ] || unpack_squid_openssl

# It counts what heed also does by the clock, and takes long on a busy machine.
system_calls='^TestSystemCallsOfARequest$'

# Packages in which goroutines share something run with the race detector. In the long
# form all others do so as well, once they have run in full, with the rounds of the short
# form, and the heed under test (testkit.Binary) has it too. Of the others, audit/store,
# fleet and counts share something: they need SQLite, go-redis and Prometheus's client,
# which would be half of what is compiled for the race detector.
raced='./proxy/... ./cache ./internal/config/access ./internal/base/memo ./internal/pace
	./internal/judge/signal/fetch'

# Compiling, linking and checking are cheaper with more memory: go-redis, which takes most,
# 14 CPU seconds with 2 GiB and 25 with one.
roomy() {
	GOGC=400 GOMEMLIMIT=2GiB "$@"
}

# go_test FLAG... -- PACKAGE...: the time limit is patience, as each in the tests is. The
# tests have the memory that a user has.
go_test() {
	roomy .build/testkit/progress -vet=off -timeout 80m -exec 'env -u GOGC -u GOMEMLIMIT' "$@"
}

go_build() {
	roomy go build "$@"
}

# with_race COMMAND ARGUMENT...: no debugger looks at what is compiled for the race
# detector. What only calculates, and SQLite, which is C that was translated to Go, is
# compiled without it, which makes it up to four times slower. No package with generic
# functions may be among these: their instances would serve the whole program.
with_race() {
	command=$1
	shift
	for package in nistec/... aes rsa sha256 sha512 edwards25519/...; do
		set -- "-gcflags=crypto/internal/fips140/$package=-dwarf=false -race=false" "$@"
	done
	for package in compress/flate modernc.org/sqlite/lib; do
		set -- "-gcflags=$package=-dwarf=false -race=false" "$@"
	done
	CGO_ENABLED=1 "$command" -race -gcflags=all=-dwarf=false "$@"
}

# checks takes what the tests have compiled. staticcheck, which compiles itself and looks at
# all dependencies, costs an eighth of everything else.
checks() {
	step gofmt formatted
	HEED_TEST_VET=$(go tool -n vet)
	export HEED_TEST_VET
	step 'go vet' roomy go vet -vettool="$PWD/internal/tools/testkit/vet.sh" ./...
	[ -z "${HEED_TEST_FULL:-}" ] || step staticcheck roomy go run "$staticcheck" ./...
}

# Beside the other tests, which often wait.
# shellcheck disable=SC2086 # a list of words
beside() {
	step "go test, of what is left out under the race detector" \
		go_test -run "$without_race" -- $not_raced
}

# The tests in files that the race detector leaves out, of packages that run with it.
# shellcheck disable=SC2046,SC2086 # lists of words
{
	raced=$(go list $raced)
	others=$(go list ./... | grep -vxF "$raced" | grep -v /testkit/pacing)
	not_raced=$(grep -l '^//go:build !race$' $(go list -f '{{$d := .Dir}}{{range .TestGoFiles}}{{$d}}/{{.}} {{end}}{{range .XTestGoFiles}}{{$d}}/{{.}} {{end}}' $raced))
	without_race=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' $not_raced | paste -sd'|')
	not_raced=$(dirname $not_raced | sed "s|^$PWD|.|" | sort -u)
}

# shellcheck disable=SC2086 # a list of words
{
	mkdir -p .build/testkit
	step 'compiling heed' go_build -o .build/testkit/ . ./internal/tools/testkit/progress
	step 'compiling what runs with the race detector' with_race go_build $raced
}

HEED_TEST_BINARY=$PWD/.build/testkit/heed
export HEED_TEST_BINARY # see testkit.Binary

beside >.build/beside.log 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null || :' EXIT

# Three packages at a time use two cores well. The suites that take longest start
# first.
# shellcheck disable=SC2086 # lists of words
{
	step 'go test' go_test -p 3 -skip "$system_calls" -- ./internal/tools/testkit/soak ./internal/tools/testkit/proof ./internal/command ./internal/tools/testkit/bypass $others
	step 'go test -race' with_race go_test -p 3 -- $raced
	if [ -n "${HEED_TEST_FULL:-}" ]; then
		mkdir -p .build/testkit/race # scripts find heed in the PATH by its name
		step 'compiling heed with the race detector' with_race go_build -o .build/testkit/race/ .
		(
			unset HEED_TEST_FULL
			HEED_TEST_BINARY=$PWD/.build/testkit/race/heed
			step 'go test -race, of the others' with_race go_test -p 3 -- $others
		)
	fi
}

wait "$beside" || {
	cat .build/beside.log
	exit 1
}
cat .build/beside.log
checks

# Delays at a site and system calls are measured while nothing else runs.
step 'go test, of pacing' go_test -- ./internal/tools/testkit/pacing
step 'go test, of system calls' go_test -run "$system_calls" -- ./internal/tools/bench

# Whole tests; of others the short form has fewer rounds and programs.
if [ -z "${HEED_TEST_FULL:-}" ]; then
	printf '\n== left out; HEED_TEST_FULL=1 runs these as well, and the others in full\n'
	echo 'staticcheck'
	echo 'the race detector, in internal/audit/store, internal/audit/counts, internal/pace/fleet and heed itself'
	{
		grep -rh -A1 --include='*_test.go' 'if !testkit\.Full {' . | sed -n 's/.*t\.Skip("\(.*\)")/\1/p'
		sed -n "s/^\[!full\] skip '\(.*\)'$/\1/p" internal/command/testdata/script/*.txtar | sed "s/''/'/g"
	} | sort -u
fi

tr '\n' ' ' <internal/output/manual/languages.md | sed -n 's/.*Not tried there: \([^.]*\(\.[^ ][^.]*\)*\)\. .*/\nnot run, although the manual names them: \1\n/p'

[ "$(id -u)" = 0 ] || printf '\nleft out, since only root can make files of other users, and run heed as them:\ntests in internal/base/ownfile, and of volumes in internal/command\n'

printf '\nPASSED: gofmt, go vet and all tests, in %s s\n' "$(($(date +%s) - begun))"
