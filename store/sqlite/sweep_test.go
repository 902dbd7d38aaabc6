package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// A commit of a sweep ends only the holds of the files that it looks at.
func TestASweepEndsFewHoldsAtOnce(t *testing.T) {
	t.Parallel()
	s, err := Open(filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	const all, each = 30, 10
	do := func(apply func(tx journal.Tx) error) {
		t.Helper()
		if err := journal.Do(t.Context(), s, apply); err != nil {
			t.Fatal(err)
		}
	}
	do(func(tx journal.Tx) error {
		for i := range all {
			if err := tx.HoldBlob(journal.Blob{Hash: fmt.Sprintf("%064x", i), Owner: "x"}, "x", 1); err != nil {
				return err
			}
		}
		return nil
	})
	for after, n := "", 1; n <= all/each; n++ {
		do(func(open journal.Tx) error {
			gone, last, err := open.SweepBlobs(2, after, each)
			if err != nil {
				return err
			}
			holds, err := open.(*tx).number("SELECT count(*) FROM blob_keeper")
			if len(gone) != each || holds != int64(all-n*each) {
				t.Errorf("commit %d removes %d files, and %d holds are left", n, len(gone), holds)
			}
			after = last
			return err
		})
	}
}
