package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// table is a Reader with keys of one owner.
type table struct {
	journal.Reader
	keys  []string
	scans int
	fails error
}

func (t *table) KVScan(_, prefix, after string, limit int) (found []journal.KV, err error) {
	t.scans++
	for _, key := range t.keys {
		if strings.HasPrefix(key, prefix) && key > after && len(found) < limit {
			found = append(found, journal.KV{Key: key, Value: []byte(`"` + key + `"`), Version: 1})
		}
	}
	return found, t.fails
}

func TestValuesAreReadPageByPage(t *testing.T) {
	t.Parallel()
	r := &table{keys: []string{"a"}}
	for i := range 2500 {
		r.keys = append(r.keys, fmt.Sprintf("b%04d", i))
	}
	all, err := journal.All[string](r, "owner", "b")
	if err != nil || !slices.Equal(all, r.keys[1:]) || r.scans != 3 {
		t.Errorf("%d values in %d pages, %v", len(all), r.scans, err)
	}
	var some []string
	for v, err := range journal.Values(r, "owner", "b", "b0010", 2) {
		if some = append(some, v.Key); err != nil || len(some) == 3 {
			break
		}
	}
	if want := []string{"b0011", "b0012", "b0013"}; !slices.Equal(some, want) {
		t.Errorf("after b0010 there are %q, want %q", some, want)
	}
	r.fails = errors.New("no luck")
	if _, err := journal.All[string](r, "owner", "b"); !errors.Is(err, r.fails) {
		t.Errorf("an error is %v", err)
	}
	r.fails = nil
	if _, err := journal.All[int](r, "owner", "a"); err == nil || !strings.Contains(err.Error(), "decode a") {
		t.Errorf("a value of another type: %v", err)
	}
}
