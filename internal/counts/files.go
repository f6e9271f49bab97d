package counts

import (
	_ "embed" // of the files of folder monitoring
	"net/http"
)

// The files for Prometheus and for Grafana, in folder monitoring. They refer to metrics of
// this package alone.
var (
	//go:embed monitoring/alerts.yml
	alerts []byte
	//go:embed monitoring/grafana.json
	grafana []byte
)

// Paths of Handler, below that of the metrics themselves.
const (
	pathMetrics = "/metrics"
	pathAlerts  = pathMetrics + "/alerts.yml"   // alert rules for Prometheus
	pathGrafana = pathMetrics + "/grafana.json" // a dashboard for Grafana
)

// file returns the handler of an embedded file.
func file(kind string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content) // the client may have left
	}
}
