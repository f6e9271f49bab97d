package store

import (
	"path/filepath"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_TheSchemaIsWhatSQLiteTakes(t *testing.T) {
	t.Parallel()
	db := must.Get(connect(filepath.Join(t.TempDir(), "a file.db"), "rwc"))(t)
	defer db.Close()
	for _, text := range []string{schema, views} {
		must.Get(db.Exec(text))(t)
	}
	must.Get(db.Exec("SELECT * FROM decisions"))(t)
}
