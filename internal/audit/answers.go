package audit

import (
	"cmp"
	"slices"
	"strings"
)

type answerKey struct{ host, answer string }

func (k answerKey) clone() answerKey { k.host = strings.Clone(k.host); return k }

// AnswerCount is how often the answers of a site to allowed requests were refusals, or asked
// for something, of one kind. Answer is empty when Host is Other.
type AnswerCount struct {
	Host   string `json:"host"`
	Answer string `json:"site_answer,omitempty"`
	Count  uint64 `json:"count"`
}

// answerCounts returns the counts, the largest first.
func answerCounts(counts boundedMap[answerKey, uint64]) []AnswerCount {
	list := make([]AnswerCount, 0, len(counts))
	for k, n := range counts {
		list = append(list, AnswerCount{k.host, k.answer, *n})
	}
	slices.SortFunc(list, func(a, b AnswerCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Answer, b.Answer))
	})
	return list
}
