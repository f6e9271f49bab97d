package store

import (
	"path/filepath"
	"testing"
)

func TestHeed_TheSchemaIsWhatSQLiteTakes(t *testing.T) {
	t.Parallel()
	db, err := connect(filepath.Join(t.TempDir(), "a file.db"), "rwc")
	must(t, err)
	defer db.Close()
	for _, text := range []string{schema, views} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("SELECT * FROM decisions"); err != nil {
		t.Error(err)
	}
}
