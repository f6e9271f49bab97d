package sealed

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// readBlocked returns the packets that the filter has refused, over a netfilter socket of
// the namespace.
func readBlocked(nft *os.File) ([]Blocked, error) {
	body := []byte{byte(nftables.TableFamilyINet), unix.NFNETLINK_V0, 0, 0}
	body = attribute(body, unix.NFTA_SET_ELEM_LIST_TABLE, []byte(tableName+"\x00"))
	body = attribute(body, unix.NFTA_SET_ELEM_LIST_SET, []byte(blockedName+"\x00"))
	var all []Blocked
	err := ask(int(nft.Fd()), unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, body, func(b []byte) {
		all = append(all, parseBlocked(b)...)
	})
	return all, err
}

// parseBlocked returns the elements in a message of the set.
func parseBlocked(b []byte) (all []Blocked) {
	if len(b) < 4 {
		return nil
	}
	attributes(inner(b[4:], unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(_ uint16, element []byte) {
		key := inner(element, unix.NFTA_SET_ELEM_KEY, unix.NFTA_DATA_VALUE)
		packets := inner(element, unix.NFTA_SET_ELEM_EXPR, unix.NFTA_EXPR_DATA, unix.NFTA_COUNTER_PACKETS)
		if len(key) >= 6 && len(packets) == 8 {
			protocol := cmp.Or(protocols[key[0]], fmt.Sprintf("protocol %d", key[0]))
			all = append(all, Blocked{fmt.Sprintf("%s/%d", protocol, binary.BigEndian.Uint16(key[4:])), binary.BigEndian.Uint64(packets)})
		}
	})
	return all
}

var protocols = map[byte]string{unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp", unix.IPPROTO_DCCP: "dccp", unix.IPPROTO_UDPLITE: "udplite"}

// mergeBlocked returns packets and sockets in one list, most first.
func mergeBlocked(packets []Blocked, sockets map[string]uint64) []Blocked {
	for path, n := range sockets {
		packets = append(packets, Blocked{"unix " + path, n})
	}
	slices.SortFunc(packets, func(a, b Blocked) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What))
	})
	return packets
}
