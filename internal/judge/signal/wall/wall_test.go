package wall_test

import (
	"net/http"
	"strings"
	"testing"

	"heed/internal/judge/signal/wall"
	"heed/internal/tools/testkit/must"
)

// answer is an answer to a request for a robots.txt: a status, fields, and a page.
type answer struct {
	status int
	fields string // "Name: value", with line ends between them
	body   string
}

func (a answer) header() http.Header {
	h := http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	for line := range strings.SplitSeq(a.fields, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			h.Set(name, value)
		}
	}
	return h
}

// walls are challenges in the forms of bot walls, in our words.
var walls = map[string]answer{
	"Cloudflare, field":        {403, "Cf-Mitigated: challenge", "<html><title>Please wait</title></html>"},
	"Cloudflare, page":         {200, "", `<!doctype html><title>Just a moment...</title><body><noscript>Enable JavaScript and cookies to continue</noscript><script>(function(){window._cf_chl_opt={cZone:'site.test'};var a=document.createElement('script');a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1';document.head.appendChild(a)}())</script>`},
	"Cloudflare, path alone":   {403, "", `<html><head><title>Wait</title><script src="/cdn-cgi/challenge-platform/h/g/orchestrate/jsch/v1"></script></head><body></body></html>`},
	"AWS WAF, challenge":       {202, "X-Amzn-Waf-Action: challenge", ""},
	"AWS WAF, captcha":         {405, "X-Amzn-Waf-Action: captcha", `<html><body><div id="captcha-container"></div></body></html>`},
	"AWS WAF, page":            {200, "", `<html><body><div id="challenge-container"></div><script>window.gokuProps={"key":"k"};</script><script src="https://a.token.awswaf.com/x/challenge.js"></script></body></html>`},
	"Vercel":                   {429, "X-Vercel-Mitigated: challenge", "<html><title>Checkpoint</title></html>"},
	"DataDome":                 {403, "X-Datadome: protected", `<html><head><title>site.test</title></head><body><script>var dd={'rt':'c'}</script><script src="https://ct.captcha-delivery.com/c.js"></script></body></html>`},
	"Imperva, iframe":          {200, "", `<html><head><META NAME="robots" CONTENT="noindex,nofollow"></head><body><iframe src="/_Incapsula_Resource?CWUDNSAI=1&xinfo=2" frameborder=0 width="100%" height="100%"></iframe></body></html>`},
	"Imperva, script":          {200, "", `<html><head><script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e"></script></head><body></body></html>`},
	"Imperva, incident":        {403, "", `<html><body>Request unsuccessful. Incapsula incident ID: 1-2</body></html>`},
	"HUMAN":                    {403, "", `<html><body><div id="px-captcha"></div><script>window._pxAppId='PX1';</script></body></html>`},
	"Akamai, proof of work":    {200, "", `<html><body><div id="sec-if-cpt-container"></div><script src="/_sec/cp_challenge/ak-challenge-4-1.htm"></script></body></html>`},
	"Akamai, refresh":          {200, "", `<html><head><meta http-equiv="refresh" content="5; URL='/robots.txt?bm-verify=AAQ'"></head><body><script>var i=1;</script></body></html>`},
	"Anubis":                   {401, "", `<!doctype html><html><head><title>Making sure</title><script id="anubis_challenge" type="application/json">{"rules":{}}</script><script type="module" src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script></head><body><div id="status">Loading</div></body></html>`},
	"Sucuri":                   {200, "", `<html><title>You are being redirected</title><script>var sucuri_cloudproxy_js='',S='ZG9j';eval(S);</script></html>`},
	"DDoS-Guard":               {403, "", `<!doctype html><html><head><title>DDoS-Guard</title><script src="/.well-known/ddos-guard/js-challenge/index.js"></script></head><body data-ddg-origin="true"><div id="ddg"></div></body></html>`},
	"SiteGround":               {202, "", `<html><head><meta http-equiv="refresh" content="0;/.well-known/sgcaptcha/?r=%2Frobots.txt"></meta></head></html>`},
	"testcookie":               {200, "", `<html><body><script>function x(){} document.cookie="__test="+toHex(1)+"; path=/"; location.href="http://site.test/robots.txt?i=1";</script><noscript>Please enable cookies.</noscript></body></html>`},
	"a cookie and a reload":    {200, "", `<html><head><script>document.cookie='human=1;path=/';window.location.reload();</script></head></html>`},
	"a form that sends itself": {415, "", `<html><body onload=""><form method="post" action="?check=1"><input type="hidden" name="t" value="1"></form><script>document.forms[0].submit();</script></body></html>`},
	"a refresh of itself":      {200, "", `<html><head><meta http-equiv="refresh" content="2"></head><body>One moment</body></html>`},
	"F5":                       {200, "", `<html><head><script type="text/javascript">(function(){window["bobcmn"]="101";})();</script><script src="/TSPD/08f7?type=7"></script></head><body></body></html>`},
	"Kasada":                   {429, "", `<html><head></head><body><script>window.KPSDK={};KPSDK.now=1;</script><script src="/149e/2d20/ips.js"></script></body></html>`},
	"hCaptcha":                 {403, "", `<html><body><form method="post"><div class="h-captcha" data-sitekey="k"></div></form><script src="https://js.hcaptcha.com/1/api.js"></script></body></html>`},
}

// shells are what frameworks and servers answer for a missing file, in our words.
var shells = map[string]answer{
	"Create React App":              {200, "", `<!doctype html><html lang="en"><head><meta charset="utf-8"/><title>React App</title><script defer src="/static/js/main.1.js"></script></head><body><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>`},
	"Vite":                          {200, "", `<!doctype html><html><head><title>Vite</title><script type="module" crossorigin src="/assets/index-1.js"></script></head><body><div id="app"></div></body></html>`},
	"Vite, developing":              {200, "", `<!doctype html><html><head><script type="module">import { injectIntoGlobalHook } from "/@react-refresh"; injectIntoGlobalHook(window); window.$RefreshReg$ = () => {};</script><script type="module" src="/@vite/client"></script></head><body><div id="root"></div><script type="module" src="/src/main.jsx"></script></body></html>`},
	"Vue CLI":                       {200, "", `<!doctype html><html><head><title>shop</title><script defer src="/js/app.1.js"></script></head><body><noscript><strong>We're sorry but shop doesn't work properly without JavaScript enabled. Please enable it to continue.</strong></noscript><div id="app"></div></body></html>`},
	"Angular":                       {200, "", `<!doctype html><html><head><base href="/"><title>App</title></head><body><app-root></app-root><script src="main-1.js" type="module"></script></body></html>`},
	"Next.js, pages":                {404, "", `<!DOCTYPE html><html><head><title>404: This page could not be found</title><script src="/_next/static/chunks/main.js" defer></script></head><body><div id="__next"><div><style>.next-error-h1{margin:0}</style><h1 class="next-error-h1">404</h1><h2>This page could not be found.</h2></div></div><script id="__NEXT_DATA__" type="application/json">{"page":"/_error"}</script></body></html>`},
	"Next.js, app":                  {404, "", `<!DOCTYPE html><!--b1--><html><head><script src="/_next/static/chunks/1.js" async=""></script><meta name="robots" content="noindex"/><title>404: This page could not be found.</title></head><body><div hidden=""><!--$--><!--/$--></div><div><div><h1 class="next-error-h1">404</h1><div><h2>This page could not be found.</h2></div></div></div><script src="/_next/static/chunks/webpack.js" id="_R_" async=""></script><script>(self.__next_f=self.__next_f||[]).push([0])</script><script>self.__next_f.push([1,"1:\"$Sreact.fragment\"\n"])</script></body></html>`},
	"Nuxt":                          {200, "", `<!DOCTYPE html><html><head><script type="module" src="/_nuxt/entry.1.js" crossorigin></script></head><body><div id="__nuxt"></div><div id="teleports"></div><script>window.__NUXT__={};window.__NUXT__.config={public:{}}</script><script type="application/json" id="__NUXT_DATA__">[1]</script></body></html>`},
	"SvelteKit":                     {200, "", `<!doctype html><html lang="en"><head><link href="/_app/immutable/entry/start.js" rel="modulepreload"></head><body data-sveltekit-preload-data="hover"><div style="display: contents"><script>{ __sveltekit_1 = { base: "" }; const element = document.currentScript.parentElement; Promise.all([import("/_app/immutable/entry/start.js"), import("/_app/immutable/entry/app.js")]).then(([kit, app]) => { kit.start(app, element); }); }</script></div></body></html>`},
	"Gatsby":                        {404, "", `<!DOCTYPE html><html><head><title>Not found</title></head><body><div id="___gatsby"><h1>Page not found</h1></div><script>window.pagePath="/404.html";</script><script src="/app-1.js" async></script></body></html>`},
	"Remix":                         {404, "", `<!DOCTYPE html><html><head><title>404 Not Found</title></head><body><h1>404 Not Found</h1><script>console.log("error boundary")</script></body></html>`},
	"Astro":                         {404, "", `<!DOCTYPE html><html><head><title>404: Not Found</title></head><body><main><h1><span>404: </span>Not found</h1><pre>Path: /robots.txt</pre></main></body></html>`},
	"Docusaurus":                    {404, "", `<!doctype html><html><head><title>Page Not Found</title><script defer src="/assets/js/main.js"></script></head><body><script>!function(){var t=localStorage.getItem("theme");document.documentElement.setAttribute("data-theme",t||"light")}()</script><div id="__docusaurus"><h1>Page Not Found</h1><p>We could not find what you were looking for.</p></div></body></html>`},
	"GitHub Pages, a single page":   {404, "", `<!DOCTYPE html><html><head><title>Single page</title><script type="text/javascript">var pathSegmentsToKeep=0;var l=window.location;l.replace(l.protocol+'//'+l.hostname+'/?/'+l.pathname.slice(1));</script></head><body></body></html>`},
	"Flutter":                       {200, "", `<!DOCTYPE html><html><head><base href="/"><title>app</title><script>var serviceWorkerVersion="1";</script><script src="flutter.js" defer></script></head><body><script>window.addEventListener('load',function(){_flutter.loader.loadEntrypoint({});});</script></body></html>`},
	"Ember":                         {200, "", `<!DOCTYPE html><html><head><meta name="shop/config/environment" content="%7B%7D"></head><body><script src="/assets/vendor.js"></script><script src="/assets/shop.js"></script><div id="ember-bootstrap"></div></body></html>`},
	"Laravel":                       {404, "", `<!DOCTYPE html><html><head><title>Not Found</title><style>body{margin:0}</style></head><body><div><div>404</div><div>Not Found</div></div></body></html>`},
	"Django":                        {404, "", `<!doctype html><html><head><title>Not Found</title></head><body><h1>Not Found</h1><p>The requested resource was not found on this server.</p></body></html>`},
	"Rails":                         {404, "", `<!DOCTYPE html><html><head><title>The page you were looking for doesn't exist (404)</title></head><body><div class="dialog"><h1>The page you were looking for doesn't exist.</h1><p>You may have mistyped the address.</p></div></body></html>`},
	"Spring Boot":                   {404, "", `<html><body><h1>Whitelabel Error Page</h1><p>This application has no explicit mapping for /error, so you are seeing this as a fallback.</p><div id='created'>now</div></body></html>`},
	"Express":                       {404, "", `<!DOCTYPE html><html><head><title>Error</title></head><body><pre>Cannot GET /robots.txt</pre></body></html>`},
	"nginx":                         {404, "", "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"},
	"Apache":                        {403, "", `<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN"><html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1><p>You don't have permission to access this resource.</p></body></html>`},
	"IIS":                           {404, "", `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>404 - File or directory not found.</title></head><body><div id="header"><h1>Server Error</h1></div><div id="content"><h2>404 - File or directory not found.</h2></div></body></html>`},
	"Tomcat":                        {404, "", `<!doctype html><html><head><title>HTTP Status 404 – Not Found</title></head><body><h1>HTTP Status 404 – Not Found</h1><hr/><p><b>Type</b> Status Report</p></body></html>`},
	"a login form":                  {200, "", `<html><body><form method="post" action=""><input name="user"><input type="password" name="pass"><button>Log in</button></form><script>document.cookie="seen=1";function go(){document.forms[0].submit()}</script></body></html>`},
	"Cloudflare's script in a page": {404, "", `<html><body><h1>Not here</h1><p>` + strings.Repeat("We moved some pages last year. ", 30) + `</p><a href="/">Home</a><script>(function(){var d=document.createElement('script');d.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'})()</script></body></html>`},
	"DataDome's field on a file":    {404, "X-Datadome: protected\nContent-Type: text/plain", "no such file"},
	"AWS WAF let it pass":           {404, "X-Amzn-Waf-Action: allow", "<html><body>Not found</body></html>"},
}

// None of the walls opens a site, whatever its status.
func TestHeed_ChallengesAreRecognised(t *testing.T) {
	t.Parallel()
	for name, a := range walls {
		kind, vendor := wall.RobotsTxt(a.status, a.header(), []byte(a.body))
		must.True(t, kind == wall.Challenge && vendor != "", "%s: %d %q", name, kind, vendor)
	}
}

// No shell for a missing file closes a site. Some may be challenges by their form alone, which
// counts under strict.
func TestHeed_ShellsAreNoChallenges(t *testing.T) {
	t.Parallel()
	doubtful := 0
	for name, a := range shells {
		switch kind, vendor := wall.RobotsTxt(a.status, a.header(), []byte(a.body)); kind {
		case wall.Challenge:
			t.Errorf("%s: %q", name, vendor)
		case wall.Doubtful:
			doubtful++
			t.Logf("%s is doubtful", name)
		}
	}
	must.True(t, doubtful != 0 && doubtful <= len(shells)/3, "%d of %d are doubtful", doubtful, len(shells))
}

// A text with rules is read, whatever its fields and whatever is in it.
func TestHeed_ATextWithRulesIsNoChallenge(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{"", "Cf-Mitigated: challenge", "X-Datadome: protected"} {
		a := answer{200, "Content-Type: text/plain\n" + fields, "# see /_Incapsula_Resource\nUser-agent: *\nDisallow: /_sec/cp_challenge/\n"}
		kind, vendor := wall.RobotsTxt(a.status, a.header(), []byte(a.body))
		must.True(t, kind == wall.None, "%s: %d %q", fields, kind, vendor)
	}
	a := answer{200, "Content-Type: text/plain\nCf-Mitigated: challenge", "wait"}
	kind, _ := wall.RobotsTxt(a.status, a.header(), []byte(a.body))
	must.True(t, kind == wall.Challenge, "a text without rules: %d", kind)
}

// In doubt it is no file, and unreachable under strict.
func TestHeed_DoubtfulPages(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`<html><body>Checking your browser before you proceed</body></html>`,
		`<html><script>fetch('/x').then(function(){})</script></html>`,
		`<html><body><div id="root"></div><script>document.cookie="a=1";location.reload()</script><script src="/app.js"></script></body></html>`,
	} {
		kind, vendor := wall.Page([]byte(body))
		must.True(t, kind == wall.Doubtful, "%s: %d %q", body, kind, vendor)
	}
}

func FuzzPage(f *testing.F) {
	for _, all := range []map[string]answer{walls, shells} {
		for _, a := range all {
			f.Add([]byte(a.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		kind, vendor := wall.Page(body)
		must.True(t, (kind == wall.None) == (vendor == ""), "%d %q", kind, vendor)
	})
}
