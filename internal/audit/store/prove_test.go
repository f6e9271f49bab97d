package store_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"heed/internal/audit"
	"heed/internal/audit/store"
	"heed/internal/tools/audittest"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// signer signs checkpoints with a new key.
func signer(t testing.TB) (sign func(*store.Head) (string, string, error), key string) {
	t.Helper()
	secret, key := must.Two(note.GenerateKey(rand.Reader, "heed-audit"))(t)
	s := must.Get(note.NewSigner(secret))(t)
	return func(h *store.Head) (string, string, error) {
		signed, err := note.Sign(&note.Note{Text: h.Checkpoint()}, s)
		return string(signed), key, err
	}, key
}

// aCrawl returns a record of n decisions with redacted values and hashed clients.
func aCrawl(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.db")
	hashed := must.Get(audit.ParseClients("hashed"))(t)
	privacy := must.Get(audit.NewPrivacy(hashed, []string{"token"}, make([]byte, audit.PrivacyKeySize)))(t)
	must.OK(t, (audittest.Crawl{Entries: n}).Write(path, store.Options{Privacy: privacy}))
	return path
}

// proofOf returns the proof of the decision seq.
func proofOf(t testing.TB, path string, seq int64, withClient bool, sign func(*store.Head) (string, string, error)) []byte {
	t.Helper()
	e, err := store.Prove(t.Context(), path, &store.Wanted{Filter: &store.Filter{First: seq, Last: seq}, Most: 1, WithClient: withClient}, sign)
	must.Need(t, err == nil && e != nil, "decision %d: %v", seq, err)
	return e.Text()
}

// python starts the checker in testdata, which is written by the form in `heed help proofs` alone,
// and returns what asks it whether a proof is right.
func python(t testing.TB) func(text []byte) (status string) {
	t.Helper()
	const ask = `
import functools, json, sys
sys.path.insert(0, "testdata"); sys.dont_write_bytecode = True
import checkproof
checkproof.signed = functools.lru_cache(100)(checkproof.signed)
for line in sys.stdin:
    print(*checkproof.verdict(json.loads(line)), flush=True)
`
	cmd := exec.Command("python3", "-c", ask)
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.OK(t, err)
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	lines := bufio.NewReader(out)
	return func(text []byte) string {
		line, _ := json.Marshal(string(text))
		must.Get(in.Write(append(line, '\n')))(t)
		answer := must.Get(lines.ReadString('\n'))(t)
		return strings.TrimSpace(answer)
	}
}

// sizes returns the short and the full number of rounds.
func sizes(short, full int) int {
	if testkit.Full {
		return full
	}
	return short
}

// Decisions at random are proved, and heed and the other checker agree that the proofs are right.
// A proof without its robots.txt has at most 8 KiB. It has no value of another decision, site or
// client, and of its own client only what was asked for.
func TestProve_DecisionsAtRandom(t *testing.T) {
	t.Parallel()
	entries := sizes(10_000, 100_000)
	path := aCrawl(t, entries)
	sign, key := signer(t)
	check := python(t)
	db := must.Get(sql.Open("sqlite", path))(t)
	defer db.Close()
	random := mathrand.New(mathrand.NewPCG(1, 2))
	largest := 0
	for i := range sizes(100, 1000) {
		seq := 1 + random.Int64N(int64(entries))
		text := proofOf(t, path, seq, i%2 == 0, sign)
		proof, err := store.CheckProof(text, key)
		must.Need(t, err == nil && len(proof.Decisions) == 1 && proof.Decisions[0].Entry["seq"] == seq,
			"decision %d: %v\n%s", seq, err, text)
		got := check(text)
		must.Need(t, got == "0 right", "decision %d: the other checker: %s\n%s", seq, got, text)
		must.Equal(t, proof.Decisions[0].Client != nil, i%2 == 0, "decision %d has a client: %v", seq, proof.Decisions[0].Client)
		size := len(text)
		if body := proof.Decisions[0].Body; body != nil {
			size -= len(body["zlib"].([]byte)) / 3 * 4
		}
		if largest = max(largest, size); i < 20 {
			foreign(t, db, seq, i%2 == 0, string(text))
		}
	}
	if t.Logf("the largest proof has %d octets without its robots.txt", largest); largest > 8<<10 {
		t.Errorf("a proof has %d octets", largest)
	}
}

// foreign looks in a proof for what belongs to others, and to the client.
func foreign(t *testing.T, db *sql.DB, seq int64, withClient bool, text string) {
	t.Helper()
	own := ""
	if withClient {
		own = " WHERE id <> (SELECT asker FROM entry WHERE seq = :seq)"
	}
	for _, query := range []string{
		"SELECT client FROM asker" + own, "SELECT user FROM asker" + own,
		"SELECT user_agent FROM asker" + strings.ReplaceAll(strings.ReplaceAll(own, "id <>", "user_agent NOT IN"), "SELECT asker FROM entry", "SELECT user_agent FROM asker JOIN entry ON asker = asker.id"),
		"SELECT host FROM site WHERE host NOT IN (SELECT host FROM site JOIN entry ON site = site.id WHERE seq = :seq)",
		"SELECT CAST(target AS TEXT) FROM entry WHERE target NOT IN (SELECT target FROM entry WHERE seq = :seq)",
	} {
		rows := must.Get(db.Query(query, sql.Named("seq", seq)))(t)
		for rows.Next() {
			var value sql.NullString
			must.OK(t, rows.Scan(&value))
			must.True(t, len(value.String) <= 7 || !strings.Contains(text, `"`+value.String+`"`),
				"the proof of %d has %q (%s)", seq, value.String, query)
		}
		rows.Close()
	}
}

// Any value of a proof that is changed in one character is found by heed and by the other checker.
func TestProve_EveryChangeOfAProofIsFound(t *testing.T) {
	t.Parallel()
	path := aCrawl(t, 3000)
	sign, key := signer(t)
	check := python(t)
	random := mathrand.New(mathrand.NewPCG(3, 4))
	changes := 0
	for i := range sizes(20, 200) {
		text := proofOf(t, path, 1+random.Int64N(3000), i%3 == 0, sign)
		eachChange(t, random, text, func(what string, changed []byte) {
			changes++
			_, err := store.CheckProof(changed, key)
			must.True(t, err != nil, "heed does not find %s", what)
			got := check(changed)
			must.True(t, !strings.HasPrefix(got, "0"), "the other checker does not find %s", what)
		})
	}
	t.Logf("%d changes", changes)
}

// eachChange calls try with the proof in which each value in turn is changed in one character.
func eachChange(t *testing.T, random *mathrand.Rand, text []byte, try func(what string, changed []byte)) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var whole any
	must.OK(t, d.Decode(&whole))
	var walk func(path string, v any, set func(any))
	changed := func(path string, old, now any, set func(any)) {
		set(now)
		b := must.Get(json.Marshal(whole))(t)
		try(fmt.Sprintf("%s: %v in place of %v", path, now, old), b)
		set(old)
	}
	walk = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			for name, of := range v {
				walk(path+"."+name, of, func(now any) { v[name] = now })
			}
		case []any:
			for i, of := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), of, func(now any) { v[i] = now })
			}
		case json.Number:
			changed(path, v, json.Number(otherDigit(random, v.String())), set)
		case string:
			changed(path, v, otherCharacter(random, v), set)
		case nil:
			changed(path, v, json.Number("0"), set)
		}
	}
	walk("", whole, func(now any) { whole = now })
}

func otherDigit(random *mathrand.Rand, n string) string {
	at := random.IntN(len(n))
	if n[at] == '-' {
		return n[1:]
	}
	return n[:at] + string('1'+(n[at]-'0'+byte(random.IntN(8)))%9) + n[at+1:]
}

func otherCharacter(random *mathrand.Rand, s string) string {
	runes := []rune(s)
	if len(runes) == 0 {
		return "x"
	}
	const others = "ABCxyz019/+=\n"
	at := random.IntN(len(runes))
	for old := runes[at]; runes[at] == old; {
		runes[at] = rune(others[random.IntN(len(others))])
	}
	return string(runes)
}

// A proof with a part of another one, or cut off, or for another key, is wrong, with the sentence
// that says why.
func TestProve_WrongProofsAreExplained(t *testing.T) {
	t.Parallel()
	path := aCrawl(t, 1000)
	sign, key := signer(t)
	_, otherKey := signer(t)
	first, second := proofOf(t, path, 10, false, sign), proofOf(t, path, 900, false, sign)
	w := open(t, path, store.Options{})
	must.OK(t, w.Decided(asked(policy("site.test"), "/")))
	must.OK(t, w.Close(""))
	later := proofOf(t, path, 10, false, sign)
	with := func(change func(e *store.Evidence)) []byte {
		e := &store.Evidence{}
		must.OK(t, json.Unmarshal(first, e))
		change(e)
		return e.Text()
	}
	of := func(text []byte) *store.Evidence {
		e := &store.Evidence{}
		must.OK(t, json.Unmarshal(text, e))
		return e
	}
	is := func(table string) func(store.ProvedRow) bool {
		return func(r store.ProvedRow) bool { return r.Table == table }
	}
	for name, c := range map[string]struct {
		text []byte
		key  string
		want string
	}{
		"another key":         {first, otherKey, "it is signed by another key"},
		"another key, inside": {with(func(e *store.Evidence) { e.Key = otherKey }), "", "its checkpoint is not signed by the key"},
		"cut off":             {first[:len(first)/2], key, "it cannot be read"},
		"two":                 {append(slices.Clone(first), second...), key, "something follows its end"},
		"a path of another decision": {with(func(e *store.Evidence) {
			e.Rows[slices.IndexFunc(e.Rows, is("entry"))].Path = e.Rows[slices.IndexFunc(e.Rows, is("site"))].Path
		}), key, "is not as commit"},
		"another checkpoint": {with(func(e *store.Evidence) { e.Checkpoint = of(later).Checkpoint }), key, "is not in the record that the checkpoint is of"},
		"without its ground": {with(func(e *store.Evidence) { e.Rows = slices.DeleteFunc(e.Rows, is("ground")) }), key, ""},
	} {
		_, err := store.CheckProof(c.text, c.key)
		must.True(t, err != nil && strings.Contains(err.Error(), c.want) && !errors.Is(err, store.ErrNoProof), "%s: %v", name, err)
	}
	for _, text := range []string{"", "{}", "null", `{"form": 1}`, "heed proof 1"} {
		_, err := store.CheckProof([]byte(text), "")
		must.True(t, errors.Is(err, store.ErrNoProof), "%q: %v", text, err)
	}
}

// A record that goes on continues a signed checkpoint from before; another one does not, nor
// one that was made anew or whose end was cut: see TestHeed_AHeadThatWasNotedDownProvesTheEnd.
func TestProve_ACheckpointBindsTheRecord(t *testing.T) {
	t.Parallel()
	path := aCrawl(t, 500)
	sign, _ := signer(t)
	proof := must.Get(store.Verify(context.Background(), path, nil, nil))(t)
	signed, _ := must.Two(sign(&proof.Head))(t)
	seal, err := store.ReadSeal([]byte(signed))
	must.Need(t, err == nil && seal.Commit == proof.Head.Commit && seal.Hash == proof.Head.Hash && seal.Store == proof.Store,
		"%+v, %v", seal, err)
	w := open(t, path, store.Options{})
	must.OK(t, w.Decided(asked(policy("site.test"), "/")))
	must.OK(t, w.Close(""))
	again, err := store.Verify(context.Background(), path, []*store.Seal{seal}, nil)
	must.True(t, err == nil && again.Whole && again.Sealed[0].Found, "a record that goes on: %+v, %v", again, err)
	again, err = store.Verify(context.Background(), aCrawl(t, 400), []*store.Seal{{Hash: seal.Hash, Commit: seal.Commit}}, nil)
	must.True(t, err == nil && !again.Whole, "another record: %+v, %v", again, err)

}
