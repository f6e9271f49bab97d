package store

import (
	"path/filepath"
	"testing"

	"heed/internal/tools/testkit/must"
)

func TestHeed_TheSchemaIsWhatSQLiteTakes(t *testing.T) {
	t.Parallel()
	db, err := connect(filepath.Join(t.TempDir(), "a file.db"), "rwc")
	must.OK(t, err)
	defer db.Close()
	for _, text := range []string{schema, views} {
		must.Get(db.Exec(text))(t)
	}
	if _, err := db.Exec("SELECT * FROM decisions"); err != nil {
		t.Error(err)
	}
}
