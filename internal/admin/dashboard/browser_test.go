package dashboard_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"heed/internal/testkit"
)

// tab is a tab of a browser.
type tab struct {
	t   testing.TB
	ctx context.Context
}

// browser starts a headless Chromium with an empty profile, which sends no requests of its
// own.
func browser(t testing.TB) *tab {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("this test needs the Debian package chromium\nsh internal/testkit/all.sh installs it")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath("chromium"), chromedp.UserDataDir(t.TempDir())}
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	root, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	ctx, end := chromedp.NewContext(root)
	t.Cleanup(end)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return &tab{t, ctx}
}

// within returns the context for one step.
func (b *tab) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, 2*testkit.Patience)
}

// do takes steps one after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, end := b.within()
	defer end()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// call checks the result of chromedp.Call.
func (b *tab) call(_ any, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// media makes pages light or dark.
func (b *tab) media(scheme string) {
	b.t.Helper()
	b.call(chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
}

// text returns the text of the first element that a selector matches.
func (b *tab) text(selector string) string {
	b.t.Helper()
	ctx, end := b.within()
	defer end()
	text, err := chromedp.Run(ctx, chromedp.Text(selector))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, end := b.within()
	defer end()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}
