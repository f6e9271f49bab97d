package study

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sort"
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
		fields := strings.SplitN(scanner.Text(), "\t", 4)
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s, line %d: there are not three fields separated by tabs", path, n)
		}
		from, err := netip.ParseAddr(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		to, err := netip.ParseAddr(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		if number := strings.TrimPrefix(fields[2], "AS"); number != "0" {
			list = append(list, network{from, to, "AS" + number})
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
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
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, prefix)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no prefixes\nIt must look like {\"prefixes\": [{\"ipv4Prefix\": \"192.0.2.0/24\"}]}", path)
	}
	return list, nil
}
