package testkit

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"heed/internal/tools/testkit/must"
)

// fileName matches a name of a source file of this repository in a comment, also with folders.
var fileName = regexp.MustCompile(`(?:^|[\s("])((?:[\w-]+/)*[a-z0-9_]+\.(?:go|sql))\b`)

// otherFiles are names in comments that are of no file of this repository.
var otherFiles = map[string]string{
	"load.sql":             "written by heed study",
	"path/of/file_test.go": "a placeholder",
}

// A file that a comment names is in the folder of the comment or, with a folder, in that one: a
// file that was renamed is renamed in comments too.
func TestHouse_CommentsNameFilesThatExist(t *testing.T) {
	root := Root(t)
	names := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".sql") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		mark := "//"
		if strings.HasSuffix(path, ".sql") {
			mark = "--"
		}
		for line := range strings.Lines(string(text)) {
			_, comment, found := strings.Cut(line, mark)
			if !found || strings.Contains(line, "://") || strings.Contains(line, "go:embed") {
				continue
			}
			for _, m := range fileName.FindAllStringSubmatch(comment, -1) {
				names++
				if _, other := otherFiles[m[1]]; other || exists(filepath.Join(filepath.Dir(path), m[1])) || exists(filepath.Join(root, m[1])) {
					continue
				}
				t.Errorf("%s: a comment names %s, which is not there", strings.TrimPrefix(path, root), m[1])
			}
		}
		return nil
	})
	must.True(t, err == nil && names >= 50, "%d names found, %v", names, err)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
