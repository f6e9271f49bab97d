package proof

import (
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// answer is what a client noted.
type answer struct {
	id     string // of the decision, as the answer names it
	target string
	status int
	octets int64 // of its body
	whole  bool  // all of it came
}

// notes are the answers that clients received.
type notes struct {
	mu  sync.Mutex
	all []answer
}

var decisionOf = regexp.MustCompile(`decision="([0-9a-f-]{36})"`)

// kinds are what is asked for, each with a number behind it.
var kinds = []string{"http://proof.test/page/", "http://proof.test/private/", "https://proof.test/page/", "https://proof.test/private/",
	"http://proof.test/long/", "http://proof.test/none/", "http://proof.test/page/", "http://proof.test/private/"}

// ask asks for url and notes what came; false when nothing did.
func (n *notes) ask(c *http.Client, url string) bool {
	resp, err := c.Get(url)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	a := answer{target: resp.Request.URL.RequestURI(), status: resp.StatusCode}
	if m := decisionOf.FindStringSubmatch(strings.Join(resp.Header["Proxy-Status"], ",")); m != nil {
		a.id = m[1]
	}
	a.octets, err = io.Copy(io.Discard, resp.Body)
	a.whole = err == nil
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, a)
	return true
}

// load asks with several clients at a time until heed does not answer any more.
func (n *notes) load(c *http.Client, round int) (over *sync.WaitGroup) {
	over = &sync.WaitGroup{}
	for i := range 8 {
		over.Go(func() {
			for j := 0; n.ask(c, fmt.Sprintf("%sr%d-%d-%d", kinds[(i+j)%len(kinds)], round, i, j)); j++ {
			}
		})
	}
	return over
}

// row is an entry as the record has it, with its outcome.
type row struct {
	id, target, verdict string
	status              sql.NullInt64 // NULL: there is no outcome
	fromSite, truncated sql.NullBool
	octets              sql.NullInt64
}

// rowsAfter returns the entries after seq, and the last seq.
func rowsAfter(t *testing.T, path string, seq int64) (map[string]row, int64) {
	t.Helper()
	db := view(t, path)
	rows := must.Get(db.Query("SELECT seq, id, target, verdict, status, from_site, bytes_out, truncated FROM decisions WHERE seq > ? AND method <> 'CONNECT'", seq))(t)
	defer rows.Close()
	all := map[string]row{}
	for rows.Next() {
		var r row
		must.OK(t, rows.Scan(&seq, &r.id, &r.target, &r.verdict, &r.status, &r.fromSite, &r.octets, &r.truncated))
		all[r.id] = r
	}
	must.OK(t, rows.Err())
	return all, seq
}

// agree fails the test where an answer, a request at the site and the record say
// different things. asked is what came to the site in this round.
func agree(t *testing.T, rows map[string]row, answers []answer, asked map[string]int) {
	t.Helper()
	for _, a := range answers {
		r, ok := rows[a.id]
		allowed := a.status == 200 || a.status == 404
		switch {
		case !ok:
			t.Errorf("%s was answered %d under the id %q, of which there is no entry", a.target, a.status, a.id)
		case r.target != a.target || (r.verdict == "allow") != allowed:
			t.Errorf("%s was answered %d, and its entry says %s of %s", a.target, a.status, r.verdict, r.target)
		case r.status.Valid && int(r.status.Int64) != a.status, a.whole && r.octets.Valid && !r.truncated.Bool && r.octets.Int64 != a.octets:
			t.Errorf("%s was answered %d with %d octets (whole: %v), and its outcome is %+v", a.target, a.status, a.octets, a.whole, r)
		}
	}
	allowed := map[string]int{}
	for _, r := range rows {
		if r.verdict == "allow" {
			allowed[r.target]++
		} else if asked[r.target] > 0 {
			t.Errorf("%s was %sd and came to the site", r.target, r.verdict)
		}
		must.True(t, !r.fromSite.Bool || asked[r.target] != 0,
			"%s is said to be answered %d by the site, which was not asked", r.target, r.status.Int64)
	}
	for target, n := range asked {
		must.True(t, allowed[target] != 0, "%s came to the site (%d times), and no entry allows it", target, n)
	}
}

// audit is `heed audit`, as a person calls it.
func audit(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Binary(t), append([]string{"audit"}, args...)...)
	cmd.Env = append(os.Environ(), testkit.RaceOptions)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "heed audit %q: %v\n%s", args, err, out)
	return string(out)
}

// verify is `heed audit verify`: the record is whole, and has the heads that were noted before.
func verify(t *testing.T, path string, heads ...string) {
	t.Helper()
	args := []string{"verify", path}
	for _, head := range heads {
		args = append(args, "--head="+head)
	}
	audit(t, args...)
}

// view opens the record at path for reading.
func view(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&_pragma=busy_timeout(5000)")
	if err == nil {
		err = db.Ping()
	}
	must.OK(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// since returns what of now is not in before.
func since(now, before map[string]int) map[string]int {
	fresh := map[string]int{}
	for target, n := range now {
		if n > before[target] {
			fresh[target] = n - before[target]
		}
	}
	return fresh
}

func TestMain(m *testing.M) { testkit.Main(m, 4) }

// However often heed is killed, at whatever moment, and while other programs read, copy and
// rebuild the record: every answer that a client
// received has its entry, every request that reached the site has one that allows it,
// every outcome is true, and the chain is complete.
func TestHeed_AKillLosesNothingFromTheRecord(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testkit.Full {
		rounds = 100
	}
	s, state := newSite(t), testkit.StateDir(t)
	path := filepath.Join(state, "audit.db")
	config := s.config("[log]\nmark = true\nlevel = \"warn\"\n")
	var seq int64
	var heads []string // the checkpoint of the round before
	var before map[string]int
	total, unended := 0, 0
	h := testkit.Start(t, testkit.Options{State: state, Config: config})
	beside(t, `sqlite3 $DB 'SELECT count(*) FROM decisions'; sqlite3 $DB ".backup $AWAY/copy.db"; sqlite3 -cmd '.timeout 5000' $DB VACUUM`, path)
	for round := range rounds {
		n := &notes{}
		over := n.load(client(t, h), round)
		if round == 0 {
			testkit.Until(t, "something is answered", func() bool { return len(n.statuses()) > 0 })
		}
		testkit.Delay(time.Duration(rand.IntN(400)) * time.Millisecond) // heed is killed at any moment of its work
		h.Signal(syscall.SIGKILL)
		h.Exit()
		over.Wait()
		h = testkit.Start(t, testkit.Options{State: state, Config: config})
		verify(t, path, heads...)
		heads = []string{audit(t, "seal", path)}
		var rows map[string]row
		rows, seq = rowsAfter(t, path, seq)
		now := s.requests()
		agree(t, rows, n.all, since(now, before))
		if before = now; t.Failed() {
			t.Fatalf("after %d rounds", round+1)
		}
		total += len(n.all)
		for _, r := range rows {
			if !r.status.Valid {
				unended++
			}
		}
	}
	t.Logf("%d rounds, %d answers, %d entries without an outcome", rounds, total, unended)
	must.True(t, total != 0, "nothing was asked")
}
