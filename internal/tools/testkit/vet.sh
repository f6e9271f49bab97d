#!/bin/sh
# The tool of `go vet -vettool`: go vet's own ($HEED_TEST_VET), which looks in every
# dependency for functions that print or do not return, for half of what it all costs. The
# short form leaves the dependencies out: vet knows those of the standard library by name.
set -eu
for config; do :; done # the last argument
case $config in
*.cfg)
	[ -z "${HEED_TEST_FULL:-}" ] || exec "$HEED_TEST_VET" "$@"
	while read -r line; do # without another process: there are 700 packages
		case $line in
		'"ImportPath": "heed'*) break ;;
		'"ImportPath":'*)
			: >"$(sed -n 's/^.*"VetxOutput": "\(.*\)",*$/\1/p' "$config")"
			exit
			;;
		esac
	done <"$config"
	;;
esac
exec "${HEED_TEST_VET:-$(go tool -n vet)}" "$@"
