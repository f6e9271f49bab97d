package proof

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heed/internal/audit/store"
	"heed/internal/base/ownfile"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// asRoot runs a command that only root may.
func asRoot(t *testing.T, command ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		command = append([]string{"sudo", "-n"}, command...)
	}
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("this test mounts a small disk; run it as root, or where sudo asks for no password: %v: %v %s", command, err, out)
	}
}

// mount mounts source at a new directory, until the test ends.
func mount(t *testing.T, source string, options ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	asRoot(t, append(append([]string{"mount"}, options...), source, dir)...)
	t.Cleanup(func() { asRoot(t, "umount", "-l", dir) })
	asRoot(t, "chown", fmt.Sprint(os.Getuid()), dir)
	return dir
}

// smallDisk is an empty file system of a few megabytes.
func smallDisk(t *testing.T) string {
	return mount(t, "tmpfs", "-t", "tmpfs", "-o", "size=6m,mode=700")
}

// fill takes all the room that is left on the disk at dir, and returns how it is
// given back.
func fill(t *testing.T, dir string) (empty func()) {
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 8<<20), 0o600) // as far as it goes
	return func() {
		must.OK(t, os.Remove(ballast))
	}
}

// withRecord starts a heed whose record is at path.
func withRecord(t *testing.T, s *site, path, settings string) *testkit.Heed {
	t.Helper()
	return testkit.Start(t, testkit.Options{Config: s.config(fmt.Sprintf("[log]\nmark = true\n[audit]\nfile = %q\n%s", path, settings))})
}

// status asks once.
func status(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	n := &notes{}
	must.Need(t, n.ask(c, url), "no answer to %s", url)
	return n.all[0].status
}

// askUntil asks for ever new pages under url until the answer is want, and fails
// when that takes too long.
func askUntil(t *testing.T, c *http.Client, n *notes, url string, want int) {
	t.Helper()
	testkit.Until(t, fmt.Sprint(url, " is answered ", want), func() bool {
		must.Need(t, n.ask(c, fmt.Sprint(url, len(n.all))), "no answer to %s", url)
		return n.all[len(n.all)-1].status == want
	})
}

// recorded drops the answers that say that nothing could be recorded: there is no
// entry of them.
func recorded(all []answer) (some []answer) {
	for _, a := range all {
		if a.status != http.StatusServiceUnavailable {
			some = append(some, a)
		}
	}
	return some
}

// agreeAtTheEnd stops heed and holds its record against the answers and the site.
func agreeAtTheEnd(t *testing.T, h *testkit.Heed, s *site, path string, n *notes) {
	t.Helper()
	h.Signal(os.Interrupt)
	h.Exit()
	verify(t, path)
	rows, _ := rowsAfter(t, path, 0)
	agree(t, rows, recorded(n.all), s.requests())
}

// While the disk is full, nothing leaves: requests are answered 503 with the reason. When
// there is room again, heed continues without a restart, and nothing is missing.
func TestHeed_AFullDiskStopsRequestsAndNothingIsUnrecorded(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t), smallDisk(t)
	path := filepath.Join(dir, "audit.db")
	h := withRecord(t, s, path, "")
	c, n := client(t, h), &notes{}
	for round := range 3 {
		askUntil(t, c, n, "http://proof.test/page/a", 200)
		empty := fill(t, dir)
		askUntil(t, c, n, "http://proof.test/page/full", 503)
		before := len(s.requests())
		resp := must.Get(c.Get(fmt.Sprintf("http://proof.test/page/no-room-%d", round)))(t)
		resp.Body.Close()
		if told := resp.Header.Get("Proxy-Status"); resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(told, "could not be recorded") {
			t.Errorf("%s, %q", resp.Status, resp.Header)
		}
		if now := len(s.requests()); now != before {
			t.Errorf("%d requests reached the site", now-before)
		}
		empty()
		askUntil(t, c, n, "http://proof.test/page/room", 200)
	}
	agreeAtTheEnd(t, h, s, path, n)
	refusedUnrecorded := int64(3) // of no-room
	for _, a := range n.all {
		if a.status == 503 {
			refusedUnrecorded++
		}
	}
	proof := must.Get(store.Verify(t.Context(), path, nil, nil))(t)
	for _, g := range proof.Gaps {
		refusedUnrecorded -= g.Refused
	}
	must.True(t, refusedUnrecorded == 0 && len(proof.Gaps) >= 3,
		"%d refusals are in none of the gaps %v", refusedUnrecorded, proof.Gaps)
	// Rounds are one trouble in the log when SQLite's file is still behind its tail,
	// and trouble of that file alone refuses nothing.
	log := h.Stderr()
	refused, ended := strings.Count(log, "decisions cannot be recorded"), strings.Count(log, "decisions are recorded again")
	must.True(t, refused >= 1 && ended >= refused && ended <= 3,
		"the log reports %d times that requests are refused, and %d ends of trouble:\n%s", refused, ended, log)
}

// A file system that the kernel makes read-only under heed, as it does after an error of the
// disk, stops requests, and what was answered before is in the record.
func TestHeed_ADiskThatBecomesReadOnlyStopsRequests(t *testing.T) {
	t.Parallel()
	s, device := newSite(t), filepath.Join(t.TempDir(), "device")
	must.OK(t, errors.Join(os.WriteFile(device, nil, 0o600), os.Truncate(device, 48<<20)))
	asRoot(t, "mkfs.ext4", "-q", "-F", device)
	dir := mount(t, device, "-o", "loop")
	path := filepath.Join(dir, "audit.db")
	h := withRecord(t, s, path, "")
	c, n := client(t, h), &notes{}
	for i := range 10 {
		n.ask(c, fmt.Sprint(kinds[i%len(kinds)], i))
	}
	asRoot(t, "mount", "-o", "remount,abort", dir)
	askUntil(t, c, n, "http://proof.test/page/full", 503)
	before := len(s.requests())
	for _, page := range []string{"page", "private"} {
		if got := status(t, c, "http://proof.test/"+page+"/read-only"); got != 503 || len(s.requests()) != before {
			t.Errorf("answered %d, %d requests reached the site", got, len(s.requests())-before)
		}
	}
	h.Signal(os.Interrupt)
	h.Exit()
	must.Contain(t, h.Stderr(), "read-only file system", "it did not say so")
	copied := filepath.Join(t.TempDir(), "audit.db") // where the next start could write
	for _, suffix := range []string{"", "-wal", ".tail", ".tail2"} {
		text, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(copied+suffix, text, 0o600)
		}
		must.OK(t, err)
	}
	must.OK(t, store.Settle(copied))
	verify(t, copied)
	rows, _ := rowsAfter(t, copied, 0)
	agree(t, rows, recorded(n.all), s.requests())
}

// A record whose files, or whose directory, are taken away stops requests until
// they are back where they were.
func TestHeed_ARecordThatIsGoneStopsRequests(t *testing.T) {
	t.Parallel()
	for _, gone := range []string{"kept/audit.db", "kept/audit.db.tail", "kept"} {
		t.Run(filepath.Base(gone), func(t *testing.T) {
			s, dir := newSite(t), t.TempDir()
			path := filepath.Join(dir, "kept", "audit.db")
			must.OK(t, os.Mkdir(filepath.Dir(path), 0o700))
			h := withRecord(t, s, path, "")
			c, n := client(t, h), &notes{}
			askUntil(t, c, n, "http://proof.test/page/a", 200)
			rename(t, filepath.Join(dir, gone), filepath.Join(dir, "elsewhere"))
			askUntil(t, c, n, "http://proof.test/page/gone", 503)
			before := len(s.requests())
			if got := status(t, c, "http://proof.test/page/still-gone"); got != 503 || len(s.requests()) != before {
				t.Errorf("answered %d, %d requests reached the site", got, len(s.requests())-before)
			}
			rename(t, filepath.Join(dir, "elsewhere"), filepath.Join(dir, gone))
			askUntil(t, c, n, "http://proof.test/page/back", 200)
			agreeAtTheEnd(t, h, s, path, n)
		})
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	must.OK(t, os.Rename(from, to))
}

// With on_failure = "continue" requests go on while the disk is full, every start
// says so, and how many they were is in the record afterwards.
func TestHeed_WhoWantsToGoesOnUnrecordedAndIsCounted(t *testing.T) {
	t.Parallel()
	s, dir := newSite(t), smallDisk(t)
	path := filepath.Join(dir, "audit.db")
	h := withRecord(t, s, path, "on_failure = \"continue\"\n")
	c := client(t, h)
	empty := fill(t, dir)
	asked := 0
	// The tail may have room for shorter decisions in its last page, and trouble of
	// SQLite's file alone, which the log reports too, loses none.
	page := "http://proof.test/page/" + strings.Repeat("long", 1500)
	testkit.Until(t, "the disk is full", func() bool {
		must.Is(t, status(t, c, fmt.Sprint(page, asked)), 200)
		asked++
		return strings.Contains(h.Stderr(), "decisions cannot be recorded")
	})
	for range 5 {
		status(t, c, fmt.Sprint(page, asked))
		asked++
	}
	empty()
	h.Signal(os.Interrupt)
	h.Exit()
	must.Contain(t, h.Stderr(), `on_failure = "continue"`, "it did not say so at the start")
	verify(t, path)
	rows, _ := rowsAfter(t, path, 0)
	if lost := lostIn(t, path); lost < 6 || len(rows)+lost != asked {
		t.Errorf("%d recorded and %d counted of %d", len(rows), lost, asked)
	}
}

// lostIn is how many decisions the record counts that it does not have.
func lostIn(t *testing.T, path string) (n int) {
	t.Helper()
	db := view(t, path)
	must.OK(t, db.QueryRow("SELECT coalesce(sum(count), 0) FROM exempt WHERE why IS NOT NULL").Scan(&n))
	return n
}

// With durability = "disk" a decision is on the disk itself before its answer: a
// copy of the device, taken at any moment as a power failure would leave it, has
// the entries of all answers until then, and the files that heed keeps beside its record.
func TestHeed_ADecisionOnDiskOutlivesAPowerFailure(t *testing.T) {
	t.Parallel()
	s, device := newSite(t), filepath.Join(t.TempDir(), "device")
	must.OK(t, errors.Join(os.WriteFile(device, nil, 0o600), os.Truncate(device, 48<<20)))
	asRoot(t, "mkfs.ext4", "-q", "-F", device)
	dir := mount(t, device, "-o", "loop")
	h := withRecord(t, s, filepath.Join(dir, "audit.db"), "durability = \"disk\"\n")
	c, n := client(t, h), &notes{}
	for round := range 3 {
		for i := range 10 {
			n.ask(c, fmt.Sprintf("%s%d-%d", kinds[i%len(kinds)], round, i))
		}
		kept := filepath.Join(dir, "granted.json")
		must.OK(t, ownfile.Write(kept, fmt.Appendf(nil, "round %d", round), 0o600))
		lost := filepath.Join(t.TempDir(), "lost") // what the page cache had and the device has not
		if out, err := exec.Command("cp", device, lost).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		path := filepath.Join(mount(t, lost, "-o", "loop"), "audit.db")
		asRoot(t, "chown", "-R", fmt.Sprint(os.Getuid()), filepath.Dir(path))
		if text, err := os.ReadFile(filepath.Join(filepath.Dir(path), filepath.Base(kept))); string(text) != fmt.Sprintf("round %d", round) {
			t.Errorf("in round %d a file that was kept holds %q: %v", round, text, err)
		}
		must.OK(t, store.Settle(path))
		verify(t, path)
		rows, _ := rowsAfter(t, path, 0)
		agree(t, rows, n.all, s.requests())
	}
}
