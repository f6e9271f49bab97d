package counts

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"heed/internal/output/manual"
	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// promtool runs the program that checks files for Prometheus, and returns what it prints.
func promtool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(testkit.Program(t, "promtool"), args...)
	cmd.Dir = "monitoring"
	out, err := cmd.CombinedOutput()
	must.True(t, err == nil, "promtool %q: %v\n%s", args, err, out)
	return string(out)
}

// alertNames are the names of the alert rules.
func alertNames() (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllSubmatch(alerts, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// Each rule is accepted by Prometheus, fires for the fault that it is for and not without
// it, and is in the manual.
func TestAlerts_AreRaisedByTheirFaultAlone(t *testing.T) {
	t.Parallel()
	must.Contain(t, promtool(t, "check", "rules", "--lint-fatal", "alerts.yml"), "SUCCESS: ")
	promtool(t, "test", "rules", "alerts_test.yml")
	tests, topic := testkit.Read(t, "monitoring/alerts_test.yml"), manualText(t)
	names := alertNames()
	must.True(t, len(names) >= 7, "only %d alerts", len(names))
	for _, name := range names {
		must.Contain(t, topic, name, "%s is not in the manual", name)
		must.True(t, regexp.MustCompile(`alertname: `+name+`\n(.*\n)? +exp_alerts:`).MatchString(tests),
			"no test expects the alert %s", name)
		must.Contain(t, tests, "{ alertname: "+name+", eval_time: 1h }", "%s is not tested with a healthy heed", name)
	}
	for _, name := range regexp.MustCompile(`\bHeed[A-Z]\w+`).FindAllString(topic, -1) {
		must.True(t, slices.Contains(names, name), "the manual has the alert %s, which no rule raises", name)
	}
	exist(t, "alerts.yml", string(alerts))
}

// dashboard is what is read here of Grafana's model of a dashboard.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr, RefID string }
	}
	Templating struct {
		List []struct{ Name, Definition string }
	}
}

// The dashboard shows every metric of heed and no other, in queries that Prometheus
// accepts, and its panels do not overlap.
func TestGrafana_ShowsEveryMetric(t *testing.T) {
	t.Parallel()
	var d dashboard
	must.OK(t, json.Unmarshal(grafana, &d))
	shown, rules, ids, cells := "", "groups:\n- name: panels\n  rules:\n", map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		must.True(t, !ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				other := cells[[2]int{x, y}]
				must.True(t, other == "" && x < 24, "the panels %q and %q overlap, or are wider than the page", p.Title, other)
				cells[[2]int{x, y}] = p.Title
			}
		}
		must.True(t, p.Type == "row" || len(p.Targets) > 0, "the panel %q shows nothing", p.Title)
		for _, target := range p.Targets {
			shown += target.Expr + "\n"
			must.Contain(t, target.Expr, `{job=~"$job", instance=~"$instance"`, "%s: not of the heeds that are chosen", p.Title)
			query := must.Get(json.Marshal(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")))(t)
			rules += fmt.Sprintf("  - record: panel%d:%s:query\n    expr: ", p.ID, target.RefID) + string(query) + "\n"
		}
	}
	for _, v := range d.Templating.List {
		exist(t, "the variable "+v.Name, v.Definition)
	}
	exist(t, "grafana.json", shown)
	for name := range exportedMetrics(t) {
		must.True(t, !strings.HasPrefix(name, "heed_") || strings.Contains(shown, name), "no panel shows %s", name)
	}
	promtool(t, "check", "rules", testkit.Write(t, filepath.Join(t.TempDir(), "panels.yml"), rules))
}

// The running heed serves both files, so that they have the version of its metrics.
func TestHandler_ServesTheFiles(t *testing.T) {
	t.Parallel()
	h := newMetrics().Handler()
	for path, want := range map[string]string{"/metrics/alerts.yml": string(alerts), "/metrics/grafana.json": string(grafana)} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		must.True(t, w.Code == http.StatusOK && w.Body.String() == want, "%s: %d, %d bytes", path, w.Code, w.Body.Len())
		must.Contain(t, manualText(t), path, "%s is not in the manual", path)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics/other", nil))
	must.Equal(t, w.Code, http.StatusNotFound, "/metrics/other")
}

func manualText(t *testing.T) string {
	t.Helper()
	topic, ok := manual.Lookup("metrics")
	must.Need(t, ok, "there is no topic metrics")
	return topic.Text
}

// partOf matches a series of a histogram.
var partOf = regexp.MustCompile(`^(\w+_seconds)_(bucket|sum|count)$`)

// exportedMetrics are the names of all series that Prometheus gets.
func exportedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{"up": true} // made by Prometheus
	for line := range strings.Lines(text(t, newMetrics())) {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
			name, _, _ = strings.Cut(name, "{")
			all[partOf.ReplaceAllString(name, "$1")] = true
		}
	}
	return all
}

// exist reports what text has of metrics that heed does not export.
func exist(t *testing.T, where, text string) {
	t.Helper()
	all := exportedMetrics(t)
	for _, name := range regexp.MustCompile(`\b(heed|go|process)_[a-z_]+|\bup\{`).FindAllString(text, -1) {
		name = partOf.ReplaceAllString(strings.TrimSuffix(name, "{"), "$1")
		must.True(t, all[name], "%s: there is no metric %s", where, name)
	}
}
