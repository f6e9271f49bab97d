package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// point is something that RFC 9309 leaves open or that robots.txt files and
// clients in the open do beyond it, with what holds our answer in place.
type point struct {
	number int
	says   string
	// stories are how the names of stories begin, each of at least one story.
	stories []string
	// tests are tests, those outside this folder with their folder: what
	// cannot be told as a story, or is the proxy's to do.
	tests []string
}

// points has them all: of reading a file (1 to 20), of matching (21 to 34), and
// of finding the groups of a client (52 to 62). The numbers between are about
// fetching a file and keeping it.
var points = []point{
	{1, "blank lines inside a group", []string{"heed blank lines"}, nil},
	{2, "other lines between user-agent lines", []string{"heed unknown lines"}, nil},
	{3, "Content-Usage between user-agent lines", []string{"heed Content-Usage"}, nil},
	{4, "rules before the first user-agent line", []string{"heed orphan rules"}, nil},
	{5, "several groups of one name", []string{"heed merged groups"}, nil},
	{6, "digits, points, signs and blanks in a name", []string{"heed names"}, nil},
	{7, "a version in a user-agent line", []string{"heed versions"}, nil},
	{8, "a star after a name, and text after a star", []string{"heed stars"}, nil},
	{9, "several names on a line", []string{"heed name lists"}, nil},
	{10, "a User-Agent string as a name", []string{"heed whole strings"}, nil},
	{11, "missing colons and misspelt fields", []string{"heed missing colons", "heed misspellings"}, nil},
	{12, "lines run together", []string{"heed collapsed lines"}, nil},
	{13, "several paths on a line", []string{"heed path lists"}, nil},
	{14, "a path without a slash before it", []string{"heed missing slashes"}, nil},
	{15, "an absolute URL as a path", []string{"heed absolute URLs"}, nil},
	{16, "byte order marks", []string{"heed byte order mark", "heed UTF-16"}, nil},
	{17, "octets that are no UTF-8, or controls", []string{"heed octets"}, nil},
	{18, "sizes of a file and of a line", []string{"heed sizes"}, []string{"TestHeed_ALineThatTheLimitCutsIsDropped"}},
	{19, "HTML in place of a file", []string{"heed HTML"}, []string{"TestHeed_HTMLWithoutARuleIsNoFile"}},
	{20, "fields that have no effect on access", []string{"heed other fields"}, nil},

	{21, "what is judged: path and query as they are sent", []string{"RFC9309 §2.2.2 matching begins", "heed canonical form"},
		[]string{"../proxy TestHeed_OpaqueTargetsAreNotKept"}},
	{22, "reserved octets, escaped or not", []string{"heed canonical form reserved"}, nil},
	{23, "the case of a path", []string{"heed case"}, nil},
	{24, "the length of a match", []string{"heed length of a match"}, nil},
	{25, "rules of equal length", []string{"RFC9309 §2.2.2 among equals", "heed length of a match patterns of one length"}, nil},
	{26, "which rule comes first", []string{"RFC9309 §2.2.2 the match of most octets"}, nil},
	{27, "ambiguous spellings of a target", []string{"heed spellings"}, []string{"TestHeed_AnotherSpellingLoosensNothing"}},
	{28, "an invalid target", nil, []string{"TestHeed_MalformedTargetsAreRefused", "../proxy TestHeed_MalformedRequestsAreAnsweredRecordedAndClosed"}},
	{29, "a NUL in a path", nil, []string{"../proxy TestHeed_MalformedRequestsAreAnsweredRecordedAndClosed"}},
	{30, "/robots.txt itself", []string{"heed robots.txt"}, nil},
	{31, "methods", nil, []string{"../proxy TestHeed_EveryMethodIsJudged"}},
	{32, "WebSockets and upgrades", nil, []string{"../proxy TestHeed_WebSocketHandshakeIsJudged"}},
	{33, "index.html and its directory", []string{"heed index.html", "heed google indexHTML"}, nil},
	{34, "OPTIONS for a whole site, and TRACE", nil, []string{"../proxy TestHeed_EveryMethodIsJudged"}},

	{52, "who the client is", []string{"heed User-Agent", "heed declared agents"}, []string{"../proxy TestHeed_DeclaredUserAgentIsSent"}},
	{53, "a client that no group is for", []string{"heed no match"}, nil},
	{54, "an empty User-Agent", []string{"heed User-Agent an empty one"}, nil},
	{55, "the User-Agents of libraries", []string{"heed User-Agent the robot's own product"}, nil},
	{56, "the User-Agents of browsers", []string{"heed User-Agent one that looks like a browser's"}, nil},
	{57, "several names that different groups are for", []string{"heed several names"}, []string{"TestHeed_ADecoyNameLoosensNothing"}},
	{58, "names that stand in for others", []string{"heed chains"}, nil},
	{59, "names that are part of others", []string{"heed 1994 names"}, nil},
	{60, "names that no User-Agent has", []string{"heed control tokens"}, nil},
	{61, "exemptions that crawlers claim", []string{"heed exemptions"}, nil},
	{62, "signatures of a client", nil, []string{"../proxy TestHeed_SignaturesPassUntouchedAndNameNobody"}},
}

// TestHeed_EveryPointHasAStory fails when a point is held by nothing any more.
func TestHeed_EveryPointHasAStory(t *testing.T) {
	numbers := map[int]bool{}
	for _, p := range points {
		numbers[p.number] = true
		if len(p.stories)+len(p.tests) == 0 {
			t.Errorf("%d, %s: nothing holds it", p.number, p.says)
		}
		for _, begin := range p.stories {
			if !storyBegins(t, begin) {
				t.Errorf("%d, %s: there is no story %q", p.number, p.says, begin)
			}
		}
		for _, name := range p.tests {
			if !testExists(t, name) {
				t.Errorf("%d, %s: there is no test %s", p.number, p.says, name)
			}
		}
	}
	for n := 1; n <= 62; n++ {
		if (n <= 34 || n >= 52) && !numbers[n] {
			t.Errorf("there is no point %d", n)
		}
	}
}

func storyBegins(t *testing.T, begin string) bool {
	for _, s := range allStories {
		if strings.HasPrefix(s.from+" "+s.says, begin) && len(s.questions(t)) > 0 {
			return true
		}
	}
	return false
}

// testExists looks for a test in the source files of its folder.
func testExists(t *testing.T, name string) bool {
	folder, name, elsewhere := strings.Cut(name, " ")
	if !elsewhere {
		folder, name = ".", folder
	}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
