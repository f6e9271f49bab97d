package lint_test

import (
	"fmt"

	"heed/rules"
	"heed/rules/lint"
)

func ExampleLint() {
	for _, f := range lint.Lint(rules.Standard, rules.Origin{}, []byte("Useragent: *\nDisallow: private\n")) {
		fmt.Printf("%d:%d %s %s\n%s\n%s\n", f.Line, f.Column, f.Kind.Severity(), f.Text, f.Kind.Means(), f.Kind.Instead())
	}
	// Output:
	// 1:1 misleading Useragent
	// The field is misspelt but understood; other robots may ignore the line.
	// Write User-agent, Allow, Disallow or Sitemap.
	// 2:11 misleading private
	// The path does not begin with /; it is read as if it did, other robots may ignore it.
	// Begin it with / or *.
}
