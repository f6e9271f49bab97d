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
	attributes(b[4:], func(kind uint16, list []byte) {
		if kind != unix.NFTA_SET_ELEM_LIST_ELEMENTS {
			return
		}
		attributes(list, func(_ uint16, element []byte) {
			var key []byte
			var count uint64
			attributes(element, func(kind uint16, value []byte) {
				switch kind {
				case unix.NFTA_SET_ELEM_KEY:
					attributes(value, func(_ uint16, v []byte) { key = v })
				case unix.NFTA_SET_ELEM_EXPR:
					count = parseCounter(value)
				}
			})
			if len(key) >= 6 {
				all = append(all, Blocked{fmt.Sprintf("%s/%d", protocolName(key[0]), binary.BigEndian.Uint16(key[4:])), count})
			}
		})
	})
	return all
}

// parseCounter returns the packets of a counter expression.
func parseCounter(b []byte) (packets uint64) {
	attributes(b, func(kind uint16, data []byte) {
		if kind != unix.NFTA_EXPR_DATA {
			return
		}
		attributes(data, func(kind uint16, v []byte) {
			if kind == unix.NFTA_COUNTER_PACKETS && len(v) == 8 {
				packets = binary.BigEndian.Uint64(v)
			}
		})
	})
	return packets
}

func protocolName(p byte) string {
	switch p {
	case unix.IPPROTO_UDP:
		return "udp"
	case unix.IPPROTO_SCTP:
		return "sctp"
	case unix.IPPROTO_DCCP:
		return "dccp"
	case unix.IPPROTO_UDPLITE:
		return "udplite"
	}
	return fmt.Sprintf("protocol %d", p)
}

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
