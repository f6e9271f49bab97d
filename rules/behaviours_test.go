package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// behaviour is something that RFC 9309 leaves open, or that robots.txt files and
// clients do beyond it, with the vectors and tests of this folder that fix our
// answer.
type behaviour struct {
	name    string
	vectors []string // how the names of vectors begin, each of at least one vector
	tests   []string // what is not a question about one file
}

var behaviours = []behaviour{
	{"blank lines inside a group", []string{"heed blank lines"}, nil},
	{"other lines between user-agent lines", []string{"heed unknown lines"}, nil},
	{"Content-Usage between user-agent lines", []string{"heed Content-Usage"}, nil},
	{"rules before the first user-agent line", []string{"heed orphan rules"}, nil},
	{"several groups of one name", []string{"heed merged groups"}, nil},
	{"digits, points, signs and blanks in a name", []string{"heed names"}, nil},
	{"a version in a user-agent line", []string{"heed versions"}, nil},
	{"a star after a name, and text after a star", []string{"heed stars"}, nil},
	{"several names on a line", []string{"heed name lists"}, nil},
	{"a User-Agent string as a name", []string{"heed whole strings"}, nil},
	{"missing colons and misspelt fields", []string{"heed missing colons", "heed misspellings"}, nil},
	{"lines run together", []string{"heed collapsed lines"}, nil},
	{"several paths on a line", []string{"heed path lists"}, nil},
	{"a path without a slash before it", []string{"heed missing slashes"}, nil},
	{"an absolute URL as a path", []string{"heed absolute URLs"}, nil},
	{"byte order marks", []string{"heed byte order mark", "heed UTF-16"}, nil},
	{"octets that are no UTF-8, or controls", []string{"heed octets"}, nil},
	{"sizes of a file and of a line", []string{"heed sizes"}, []string{"TestHeed_ALineThatTheLimitCutsIsDropped"}},
	{"HTML in place of a file", []string{"heed HTML"}, []string{"TestHeed_HTMLWithoutARuleIsNoFile"}},
	{"fields that have no effect on access", []string{"heed other fields"}, nil},
	{"what is judged: path and query as they are sent", []string{"RFC9309 §2.2.2 matching begins", "heed canonical form"}, nil},
	{"reserved octets, escaped or not", []string{"heed canonical form reserved"}, nil},
	{"the case of a path", []string{"heed case"}, nil},
	{"the length of a match", []string{"heed length of a match"}, nil},
	{"rules of equal length", []string{"RFC9309 §2.2.2 among equals", "heed length of a match patterns of one length"}, nil},
	{"which rule comes first", []string{"RFC9309 §2.2.2 the match of most octets"}, nil},
	{"ambiguous spellings of a target", []string{"heed spellings"}, []string{"TestHeed_AnotherSpellingLoosensNothing"}},
	{"an invalid target", nil, []string{"TestHeed_MalformedTargetsAreRefused"}},
	{"/robots.txt itself", []string{"heed robots.txt"}, nil},
	{"index.html and its directory", []string{"heed index.html", "heed google indexHTML"}, nil},
	{"who the client is", []string{"heed User-Agent", "heed declared agents"}, nil},
	{"a client that no group is for", []string{"heed no match"}, nil},
	{"an empty User-Agent", []string{"heed User-Agent an empty one"}, nil},
	{"the User-Agents of libraries", []string{"heed User-Agent the robot's own product"}, nil},
	{"the User-Agents of browsers", []string{"heed User-Agent one that looks like a browser's"}, nil},
	{"several names that different groups are for", []string{"heed several names"}, []string{"TestHeed_ADecoyNameLoosensNothing"}},
	{"names that stand in for others", []string{"heed chains"}, nil},
	{"names that are part of others", []string{"heed 1994 names"}, nil},
	{"names that no User-Agent has", []string{"heed control tokens"}, nil},
	{"exemptions that crawlers claim", []string{"heed exemptions"}, nil},
}

// TestHeed_EveryBehaviourHasATest fails when nothing tests a behaviour any more.
func TestHeed_EveryBehaviourHasATest(t *testing.T) {
	t.Parallel()
	for _, b := range behaviours {
		for _, begin := range b.vectors {
			must.True(t, vectorBegins(t, begin), "%s: there is no vector %q", b.name, begin)
		}
		for _, name := range b.tests {
			must.True(t, testExists(t, name), "%s: there is no test %s", b.name, name)
		}
	}
}

func vectorBegins(t *testing.T, begin string) bool {
	for _, v := range allVectors {
		if strings.HasPrefix(v.from+" "+v.name, begin) && len(v.questions(t)) > 0 {
			return true
		}
	}
	return false
}

// testExists looks for a test in the source files of this folder.
func testExists(t *testing.T, name string) bool {
	files := must.Get(filepath.Glob("*_test.go"))(t)
	for _, f := range files {
		source := must.Get(os.ReadFile(f))(t)
		if strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
