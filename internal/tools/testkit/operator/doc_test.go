// Package operator has the tests of what operators use: a real heed with its admin
// listener, a real Prometheus, and programs behind heed that try to reach it.
package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// heed is a running heed with an admin listener.
type heed struct {
	*testkit.Heed
	t     *testing.T
	admin string // its address
}

// start starts heed for the sites of o with an admin listener. tables are further tables
// of proxy.toml.
func start(t *testing.T, o *testkit.Origin, listen, tables string) *heed {
	t.Helper()
	_, port, _ := strings.Cut(listen, ":")
	top := "[admin]\nlisten = \"" + listen + "\"\n"
	if strings.HasPrefix(listen, "0.0.0.0:") { // other machines could reach it
		top += "token = \"env:ADMIN_TOKEN\"\n"
	}
	options := testkit.Options{Config: o.Config(top) + tables, Env: []string{"ADMIN_TOKEN=0123456789abcdef"}}
	return &heed{testkit.Start(t, options), t, "127.0.0.1:" + port}
}

// client returns a client behind heed that does not follow redirects.
func (h *heed) client() *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: h.Addr}), MaxIdleConnsPerHost: 16}
	h.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: testkit.Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// read returns status and body of an admin page.
func (h *heed) read(path string) (int, string) {
	h.t.Helper()
	resp := must.Get(http.Get("http://" + h.admin + path))(h.t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(h.t)
	return resp.StatusCode, string(body)
}

// sum returns the sum of all series of a metric.
func (h *heed) sum(metric string) (n int) {
	h.t.Helper()
	_, text := h.read("/metrics")
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && (name == metric || strings.HasPrefix(name, metric+"{")) {
			v := must.Get(strconv.ParseFloat(value, 64))(h.t)
			n += int(v)
		}
	}
	return n
}

// command runs heed with the state directory of h.
func (h *heed) command(args ...string) (out string, code int) {
	h.t.Helper()
	cmd := exec.Command(testkit.Binary(h.t), args...)
	cmd.Dir, cmd.Env = h.t.TempDir(), []string{"HEED_STATE=" + h.State, "HOME=" + h.State, testkit.RaceOptions}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	must.Need(h.t, err == nil || cmd.ProcessState != nil, "%v", err)
	code = cmd.ProcessState.ExitCode()
	must.Need(h.t, code <= 1, "heed %q: %d %s", args, code, stderr.String())
	return string(text), code
}

// prometheus is a real Prometheus that scrapes h once a second.
type prometheus struct {
	t    *testing.T
	addr string
}

func scrape(t *testing.T, h *heed) *prometheus {
	t.Helper()
	dir := t.TempDir()
	config := testkit.Write(t, filepath.Join(dir, "prometheus.yml"), fmt.Sprintf(`
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [%q]
scrape_configs:
  - job_name: heed
    static_configs: [{ targets: [%q] }]
`, filepath.Join(testkit.Root(t), "internal/audit/counts/monitoring/alerts.yml"), h.admin))
	p := &prometheus{t, testkit.FreeAddr(t)}
	cmd := exec.Command(testkit.Program(t, "prometheus"), "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+p.addr, "--log.level=warn")
	cmd.Env = []string{"GOMAXPROCS=1"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Until(t, "Prometheus scrapes heed", func() bool { return p.query(`up{job="heed"}`) == 1 })
	return p
}

// query returns the value of an expression with one result; -1 when there is none.
func (p *prometheus) query(expression string) float64 {
	p.t.Helper()
	client := http.Client{Timeout: testkit.Patience}
	resp, err := client.Get("http://" + p.addr + "/api/v1/query?query=" + url.QueryEscape(expression))
	if err != nil {
		return -1
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Data.Result) != 1 {
		return -1
	}
	return must.Get(strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64))(p.t)
}
