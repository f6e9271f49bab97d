package command_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// A process that may open 64 files serves the connections that it admits: those that it turns
// away do not hold the files that these need for the site.
func TestAdmittedConnectionsHaveFiles(t *testing.T) {
	t.Parallel()
	all, answer := make(chan struct{}, 200), make(chan struct{})
	site := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			<-answer
		}
	})}
	go server.Serve(site)
	defer server.Close()
	p := newPlace(t)
	addr, file := testkit.FreeAddr(t), filepath.Join(t.TempDir(), "proxy.toml")
	must.OK(t, os.WriteFile(file, fmt.Appendf(nil, "listen = %q\n", addr), 0o600))
	cmd := exec.Command("sh", "-c", `ulimit -n 64 && exec "$0" serve --config "$1"`, testkit.Binary(t), file)
	cmd.Env = p.heed("serve").Env
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	defer func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	}()
	testkit.Until(t, "heed answers, and has opened the files that it needs itself", func() bool {
		c := http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}), DisableKeepAlives: true}}
		resp, err := c.Get("http://" + site.Addr().String() + "/robots.txt")
		if err == nil {
			resp.Body.Close()
		}
		return err == nil && resp.StatusCode == http.StatusOK
	})
	var mu sync.Mutex
	statuses := map[int]int{} // 0: closed without an answer
	var clients sync.WaitGroup
	for range 120 {
		c := must.Get(net.Dial("tcp", addr))(t)
		clients.Go(func() {
			defer c.Close()
			fmt.Fprintf(c, "GET http://%s/page HTTP/1.1\r\nHost: %[1]s\r\nUser-Agent: Bot/1\r\n\r\n", site.Addr())
			all <- struct{}{}
			status := 0
			if a, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				status = a.StatusCode
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	for range 120 {
		<-all
	}
	testkit.Until(t, "the others are turned away", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return statuses[0]+statuses[429] > 90
	})
	close(answer)
	clients.Wait()
	t.Logf("%v", statuses)
	must.True(t, statuses[200] >= 8 && statuses[502]+statuses[504] == 0, "answers by status, 0 for none: %v", statuses)
}
