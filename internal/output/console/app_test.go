package console

import (
	"bytes"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_ErrorsWithAStatusSayNothingMore(t *testing.T) {
	var errs bytes.Buffer
	a := &App{Stderr: &errs, Stdout: io.Discard}
	got := a.Fail(Exit(7))
	must.True(t, got == 7 && errs.Len() == 0, "status %d, stderr %q", got, errs.String())
}

func TestBuild_NamesVersionCommitAndGo(t *testing.T) {
	if got := Build(); !strings.HasPrefix(got, "heed "+Version()+" (") || !strings.HasSuffix(got, runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH+")") {
		t.Errorf("Build() = %q", got)
	}
	for want, settings := range map[string][]debug.BuildSetting{
		"":                                   {{Key: "vcs.modified", Value: "true"}},
		"commit 0123456789ab, ":              {{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "false"}},
		"commit 0123456789ab with changes, ": {{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
	} {
		must.Equal(t, commitOf(settings), want, "commitOf(%v) =", settings)
	}
}
