package study

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// LoadNetworks reads autonomous systems from a file of lines "first address, last
// address, number", separated by tabs, with anything after. The func it returns finds the
// system of an address.
func LoadNetworks(path string) (func(netip.Addr) (string, bool), error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []network
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for n := 1; scanner.Scan(); n++ {
		one, err := parseNetwork(scanner.Text())
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w\nA line has the first address, the last and the number, separated by tabs", path, n, err)
		}
		if one.name != "AS0" {
			list = append(list, one)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no autonomous systems\nA line has the first address, the last and the number, separated by tabs", path)
	}
	slices.SortFunc(list, func(a, b network) int { return a.from.Compare(b.from) })
	return func(a netip.Addr) (string, bool) {
		i := sort.Search(len(list), func(i int) bool { return list[i].from.Compare(a) > 0 }) - 1
		if i < 0 || list[i].to.Compare(a) < 0 {
			return "", false
		}
		return list[i].name, true
	}, nil
}

type network struct {
	from, to netip.Addr
	name     string
}

// parseNetwork reads a line of LoadNetworks; the number 0 is of addresses in no system.
func parseNetwork(line string) (n network, err error) {
	fields := strings.SplitN(line, "\t", 4)
	if len(fields) < 3 {
		return n, errors.New("there are not three fields separated by tabs")
	}
	if n.from, err = netip.ParseAddr(fields[0]); err != nil {
		return n, err
	}
	if n.to, err = netip.ParseAddr(fields[1]); err != nil {
		return n, err
	}
	if n.from.BitLen() != n.to.BitLen() || n.to.Less(n.from) {
		return n, errors.New("the last address is before the first")
	}
	number := strings.TrimPrefix(fields[2], "AS")
	if _, err := strconv.ParseUint(number, 10, 32); err != nil {
		return n, fmt.Errorf("%q is not the number of an autonomous system", fields[2])
	}
	n.name = "AS" + number
	return n, nil
}

// LoadRanges reads the address ranges that the operator of a robot publishes, in the form
// that several use: {"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": ...}]}.
func LoadRanges(path string) ([]netip.Prefix, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Prefixes []struct {
			V4 string `json:"ipv4Prefix"`
			V6 string `json:"ipv6Prefix"`
		} `json:"prefixes"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var list []netip.Prefix
	for _, p := range file.Prefixes {
		prefix, err := netip.ParsePrefix(p.V4 + p.V6)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a prefix: %w\nWrite for example 192.0.2.0/24", path, p.V4+p.V6, err)
		}
		list = append(list, prefix)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no prefixes\nIt must look like {\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\"}]}", path)
	}
	return list, nil
}
