package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/pprof"
	"runtime/debug"
	"strings"
	"time"
)

// Paths of the server's own.
const (
	pathMetrics = "/metrics"
	pathPprof   = "/debug/pprof/"
)

// healthPaths are the end points of health. Each kind has two names, those of Kubernetes
// and of Prometheus.
var healthPaths = map[string]func(*Server, http.ResponseWriter, *http.Request, bool){
	"/healthz": (*Server).healthy, "/-/healthy": (*Server).healthy,
	"/readyz": (*Server).ready, "/-/ready": (*Server).ready,
}

// handle answers all requests: the checks, then the mux.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	defer s.recovered(w, r)
	bound(w, r)
	protect(w.Header())
	now := s.config.Live()
	if f := s.origin(r, now); f.status != 0 {
		f.answer(w)
		return
	}
	authenticated, f := authenticate(r, now)
	if health := healthPaths[r.URL.Path]; health != nil {
		health(s, w, r, f.status == 0)
		return
	}
	if f.status == 0 {
		f = crossSite(r)
	}
	if f.status != 0 {
		f.answer(w)
		return
	}
	ctx := context.WithValue(r.Context(), actKey{}, authenticated && now.Actions)
	ctx = context.WithValue(ctx, admittedKey{}, s.readmission(r, now))
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// recovered answers for a panic of a handler, which is a fault of heed, and logs it.
func (s *Server) recovered(w http.ResponseWriter, r *http.Request) {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		s.config.Log.Error("a fault in the admin listener", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
		http.Error(w, "A fault in heed: its log has more.", http.StatusInternalServerError)
	}
}

// bound limits the time of the answer, and the size and the time of the request's body.
func bound(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout)) // connections support deadlines
	if r.ContentLength != 0 {
		_ = c.SetReadDeadline(time.Now().Add(writeTimeout))
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	}
}

// protect sets the fields that keep browsers from showing an answer inside another site,
// storing it, or running anything in it. The dashboard replaces Content-Security-Policy.
func protect(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// routes returns the handlers of the paths other than those of health.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+pathMetrics, s.config.Metrics)
	mux.Handle("GET "+pathMetrics+"/", s.config.Metrics)
	mux.HandleFunc(pathPprof, s.profile)
	mux.Handle("/", s.config.Dashboard)
	return mux
}

// healthy answers that the process works: it can answer.
func (s *Server) healthy(w http.ResponseWriter, r *http.Request, _ bool) {
	if !reads(w, r) {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "heed is running")
}

// ready answers whether heed serves requests. The reasons can contain names of sites and
// files: they are for requests that may read.
func (s *Server) ready(w http.ResponseWriter, r *http.Request, mayRead bool) {
	if !reads(w, r) {
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	notReady, unwell := s.config.Health()
	text := &strings.Builder{}
	if len(notReady) == 0 {
		text.WriteString("heed is ready\n")
	} else {
		text.WriteString("heed is not ready\n")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	if mayRead {
		for _, why := range notReady {
			fmt.Fprintf(text, "not ready: %s\n", why)
		}
		for _, why := range unwell {
			fmt.Fprintf(text, "not well: %s\n", why)
		}
	}
	fmt.Fprint(w, text)
}

// reads reports whether the method of r only reads, and answers it otherwise.
func reads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "Only GET and HEAD are possible here.", http.StatusMethodNotAllowed)
	return false
}

// maxProfile is the longest time that a profile may take.
const maxProfile = 5 * time.Minute

// profile serves net/http/pprof while the settings allow it.
func (s *Server) profile(w http.ResponseWriter, r *http.Request) {
	if !s.config.Live().Pprof {
		http.Error(w, "Profiles are not served: pprof under [admin] is false.", http.StatusNotFound)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxProfile + writeTimeout)) // connections support deadlines
	ctx, cancel := context.WithTimeout(r.Context(), maxProfile)
	defer cancel()
	r = r.WithContext(ctx)
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	switch strings.TrimPrefix(r.URL.Path, pathPprof) {
	case "cmdline":
		http.NotFound(w, r) // arguments can contain passwords
	case "profile":
		pprof.Profile(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	case "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}
