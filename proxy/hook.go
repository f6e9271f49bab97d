package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"github.com/elazarl/goproxy"
)

// requestHook is what goproxy calls for every request of every connection and of every
// intercepted tunnel.
type requestHook = func(*http.Request, *goproxy.ProxyCtx) (*http.Request, *http.Response)

// newEngine returns goproxy with heed's hooks: every CONNECT is taken over, and every
// request is decided on by hook, which is onRequest. All of goproxy's own ways out are
// closed, so that nothing leaves without the hook.
func newEngine(p *Proxy, hook requestHook) http.Handler {
	g := goproxy.NewProxyHttpServer()
	g.Logger = engineLog{p.config.Log}
	g.KeepHeader, g.KeepDestinationHeaders, g.KeepAcceptEncoding = true, true, true
	g.ConnectDial = nil // goproxy took it from the environment
	g.ConnectDialWithReq = func(*http.Request, string, string) (net.Conn, error) { return nil, errNoWayOut }
	g.Tr = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errNoWayOut }}

	intercept := &goproxy.ConnectAction{
		Action: goproxy.ConnectHijack,
		Hijack: func(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
			exchangeOf(r.Context()).intercept(client.(*tunnelConn))
		},
	}
	pass := &goproxy.ConnectAction{
		Action: goproxy.ConnectHijack,
		Hijack: func(r *http.Request, client net.Conn, _ *goproxy.ProxyCtx) {
			exchangeOf(r.Context()).passTunnel(client.(*tunnelConn))
		},
	}
	g.OnRequest().HandleConnectFunc(func(host string, ctx *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		if exchangeOf(ctx.Req.Context()).site != nil { // decided on, and open
			return pass, host
		}
		return intercept, host
	})
	g.OnRequest().DoFunc(hook)
	return g
}

// onRequest decides on a request. What is refused gets its answer here, and what is allowed
// leaves through forward.
func onRequest(r *http.Request, ctx *goproxy.ProxyCtx) (*http.Request, *http.Response) {
	x := exchangeOf(r.Context())
	if x.decide(x); x.refusal != nil {
		x.closePort()
		return r, x.writer.takeHeader(x.refused(r))
	}
	if ctx.RoundTripper = forwarding; x.req.conn.asked != nil {
		ctx.RoundTripper = permitting
	}
	return r, nil
}

// forwarding sends an allowed request to its site.
var forwarding = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
	x := exchangeOf(r.Context())
	return x.writer.takeHeader(x.forward(r)), nil
})

// permitting answers an allowed request that another proxy sends.
var permitting = goproxy.RoundTripperFunc(func(r *http.Request, _ *goproxy.ProxyCtx) (*http.Response, error) {
	x := exchangeOf(r.Context())
	return x.writer.takeHeader(x.permit(r)), nil
})

// exchangeKey is the context key of the exchange that a request belongs to.
type exchangeKey struct{}

// Value makes the exchange reachable from the request's context.
func (x *exchange) Value(key any) any {
	if key == (exchangeKey{}) {
		return x
	}
	return x.delivery.Value(key)
}

// exchangeOf returns the exchange that ctx belongs to. A request that did not
// come through handle is an impossible state.
func exchangeOf(ctx context.Context) *exchange {
	return ctx.Value(exchangeKey{}).(*exchange)
}

// errNoWayOut is what goproxy gets when it tries to dial a site.
var errNoWayOut = errors.New("proxy: goproxy must not dial")

// engineLog takes goproxy's warnings. They concern single connections that
// the record contains anyway.
type engineLog struct{ log *slog.Logger }

// Printf implements goproxy.Logger.
func (l engineLog) Printf(format string, v ...any) {
	l.log.Debug("goproxy", "message", fmt.Sprintf(format, v...))
}
