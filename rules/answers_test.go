package rules

import (
	"testing"

	"heed/internal/tools/testkit/must"
)

// Of what a site answered under several names, the answer to the client's own name holds,
// then heed's own, then a denial of another client; never the file of another client.
func TestInForce(t *testing.T) {
	file := func(name string) Answer { return Answer{For: NameKey(name), File: true} }
	none := func(name string) Answer { return Answer{For: NameKey(name)} }
	denied := func(name string) Answer { return Answer{For: NameKey(name), Denied: true} }
	failed := func(name string) Answer { return Answer{For: NameKey(name), Failed: true} }
	for _, c := range []struct {
		what    string
		answers []Answer
		want    int
	}{
		{"nothing is known", nil, -1},
		{"a file for another version of the client", []Answer{file(""), file("OneBot/2")}, 1},
		{"none for the client, a file for heed", []Answer{none("OneBot"), file("")}, 0},
		{"a denial of the client, a file for heed", []Answer{denied("OneBot"), file("")}, 1},
		{"a failure for the client, a file for heed", []Answer{failed("OneBot"), file("")}, 1},
		{"a denial of the client, a denial of heed", []Answer{denied("OneBot"), denied("")}, 0},
		{"a failure for the client, none for heed", []Answer{failed("OneBot"), none("")}, 0},
		{"heed's own before that of another", []Answer{denied("TwoBot"), none("")}, 1},
		{"a denial of another client", []Answer{denied("TwoBot")}, 0},
		{"a denial of another client, a failure for heed", []Answer{failed(""), denied("TwoBot")}, 1},
		{"a file of another client", []Answer{file("TwoBot"), none("ThreeBot"), failed("FourBot")}, -1},
		{"a file and a denial of others", []Answer{file("TwoBot"), denied("ThreeBot")}, 1},
		{"a failure for heed", []Answer{failed("")}, 0},
		{"the last of two", []Answer{file(""), file("")}, 1},
	} {
		must.Equal(t, InForce(c.answers, NameKey("OneBot/1.0")), c.want, c.what)
	}
	must.Equal(t, InForce([]Answer{file("OneBot"), file("")}, NameKey("")), 1, "a client without a User-Agent")
}
