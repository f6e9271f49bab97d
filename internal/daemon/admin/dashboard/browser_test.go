package dashboard_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"heed/internal/tools/testkit"
	"heed/internal/tools/testkit/must"
)

// tab is the tab of a browser, which it drives with the Chrome DevTools Protocol
// (chromedevtools.github.io/devtools-protocol) through two pipes: each message is JSON
// and ends with an octet 0.
type tab struct {
	t       testing.TB
	in      *os.File
	session string

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	loaded  int                                         // pages
	event   func(method string, params json.RawMessage) // nil: none is looked at
}

// reply is what the browser answers to a command.
type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// params are those of a command.
type params map[string]any

// browser starts a headless Chromium with an empty profile, which sends no requests of its
// own.
func browser(t testing.TB) *tab {
	t.Helper()
	_, err := exec.LookPath("chromium")
	must.Need(t, err == nil, "this test needs the Debian package chromium\nsh internal/tools/testkit/all.sh installs it")
	profile := t.TempDir()
	cmd := exec.Command("chromium", "--remote-debugging-pipe", "--user-data-dir="+profile, "--headless", "--no-sandbox", "--disable-gpu",
		"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars")
	cmd.Env = append(os.Environ(), "HOME="+profile)
	read, in := must.Two(os.Pipe())(t)
	out, write := must.Two(os.Pipe())(t)
	cmd.ExtraFiles = []*os.File{read, write} // its descriptors 3 and 4
	testkit.NotOrphaned(cmd)
	must.OK(t, cmd.Start(), "chromium does not start")
	read.Close()
	write.Close()
	b := &tab{t: t, in: in, waiting: map[int]chan reply{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.read(out)
	}()
	t.Cleanup(func() {
		_, _ = b.try("Browser.close", nil)
		in.Close()
		<-ended
		out.Close()
		_ = cmd.Wait()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", params{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// read takes messages until the browser has ended.
func (b *tab) read(out *os.File) {
	messages := bufio.NewReader(out)
	for {
		text, err := messages.ReadBytes(0)
		if err != nil {
			break
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			reply
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; c != nil {
			c <- m.reply
			delete(b.waiting, m.ID)
		}
		if m.Method == "Page.loadEventFired" {
			b.loaded++
		}
		event := b.event
		b.mu.Unlock()
		if m.Method != "" && event != nil {
			event(m.Method, m.Params)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, c := range b.waiting {
		c <- reply{Error: &struct{ Message string }{"chromium has ended"}}
		delete(b.waiting, id)
	}
}

// try sends a command and returns the result.
func (b *tab) try(method string, p params) (json.RawMessage, error) {
	b.mu.Lock()
	b.last++
	id, answered := b.last, make(chan reply, 1)
	b.waiting[id] = answered
	message := map[string]any{"id": id, "method": method, "params": p}
	if p == nil {
		delete(message, "params")
	}
	if b.session != "" && method != "Browser.close" {
		message["sessionId"] = b.session
	}
	b.mu.Unlock()
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return nil, err
	}
	select {
	case r := <-answered:
		if r.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		return r.Result, nil
	case <-time.After(2 * testkit.Patience):
		return nil, fmt.Errorf("%s has no answer", method)
	}
}

// call sends a command, which must succeed; result may be nil.
func (b *tab) call(method string, p params, result any) {
	b.t.Helper()
	text, err := b.try(method, p)
	if err == nil && result != nil {
		err = json.Unmarshal(text, result)
	}
	must.OK(b.t, err)
}

// open loads a page.
func (b *tab) open(url string) {
	b.t.Helper()
	before := b.pages()
	var opened struct{ ErrorText string }
	b.call("Page.navigate", params{"url": url}, &opened)
	must.Need(b.t, opened.ErrorText == "", "%s: %s", url, opened.ErrorText)
	b.loads(before)
}

// loads waits until another page than the first n is there, and whole.
func (b *tab) loads(n int) {
	b.t.Helper()
	testkit.Until(b.t, "a page is loaded", func() bool { return b.pages() > n })
	b.until("document.readyState == 'complete'")
}

func (b *tab) pages() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.loaded
}

// media makes pages light or dark.
func (b *tab) media(scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// size makes the window so wide.
func (b *tab) size(width int64) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", params{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// evaluate returns the value of a JavaScript expression; of a promise, what it becomes.
func (b *tab) evaluate(expression string) (json.RawMessage, error) {
	text, err := b.try("Runtime.evaluate", params{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return nil, err
	}
	var of struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, err
	}
	if of.ExceptionDetails != nil {
		return nil, fmt.Errorf("%.100s: %s", expression, of.ExceptionDetails)
	}
	return of.Result.Value, nil
}

// eval returns the value of a JavaScript expression, which must be of type T.
func eval[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	text, err := b.evaluate(expression)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	must.OK(b.t, err)
	return v
}

// until waits until a JavaScript expression is true, on whatever page then is there.
func (b *tab) until(expression string) {
	b.t.Helper()
	testkit.Until(b.t, expression, func() bool {
		text, err := b.evaluate(expression)
		return err == nil && string(text) == "true"
	})
}

// find waits until an element is visible, and returns the expression that finds it.
func (b *tab) find(selector string) (element string) {
	b.t.Helper()
	element = fmt.Sprintf("document.querySelector(%q)", selector)
	b.until("(e => e != null && e.getClientRects().length > 0)(" + element + ")")
	return element
}

// text returns the text of the first element that a selector matches.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, b.find(selector)+".innerText")
}

// click presses the mouse on an element of a page that is complete: one that is still being
// read moves its elements.
func (b *tab) click(selector string) {
	b.t.Helper()
	element := b.find(selector)
	b.until("document.readyState == 'complete'")
	at := eval[[2]float64](b, "(e => { e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2] })("+element+")")
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", params{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1}, nil)
	}
}

// press types keys while an element has the focus; \r is Enter, which opens a page.
func (b *tab) press(selector, keys string) {
	b.t.Helper()
	eval[bool](b, "("+b.find(selector)+".focus(), true)")
	for _, key := range keys {
		if key != '\r' {
			b.call("Input.dispatchKeyEvent", params{"type": "char", "text": string(key)}, nil)
			continue
		}
		before := b.pages()
		for _, kind := range []string{"keyDown", "keyUp"} {
			p := params{"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13}
			if kind == "keyDown" {
				p["text"] = "\r"
			}
			b.call("Input.dispatchKeyEvent", p, nil)
		}
		b.loads(before)
	}
}
