package sealed

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if IsHelper() {
		os.Exit(Helper())
	}
	os.Exit(m.Run())
}

func TestFirst(t *testing.T) {
	begun := time.Now()
	r, err := Launch(Options{Hide: t.TempDir(), Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := NewNetwork(r.Files)
	if err != nil {
		t.Fatal(err)
	}
	n.Serve()
	go http.Serve(n.Redirected, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		at := q.Context().Value(http.LocalAddrContextKey).(net.Addr)
		io.WriteString(w, fmt.Sprintf("reached %s host %s\n", at, q.Host))
	}))
	err = r.Exec(Command{Path: "/bin/sh", Args: []string{"sh", "-c", os.Getenv("SCRIPT")}, Env: os.Environ()})
	fmt.Println(time.Since(begun), err)
	s, err := r.Wait()
	fmt.Println(s, err, r.Blocked())
}
