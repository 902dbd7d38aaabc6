package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/kerneltest"
)

// pages scans to the end.
func pages(t *testing.T, g *instance, r *kernelv1.ScanRequest) (keys []string, n int) {
	t.Helper()
	for more := true; more; {
		page, err := g.kv.Scan(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.GetValues() {
			keys = append(keys, v.GetKey())
		}
		if n++; len(page.GetValues()) == 0 && page.GetMore() || n > 1000 {
			t.Fatal("an empty page says that there is more")
		}
		if size := proto.Size(page); size > contract.MaxMessage {
			t.Fatalf("a page has %d bytes", size)
		}
		if more = page.GetMore(); more {
			r.After = keys[len(keys)-1]
		}
	}
	return keys, n
}

func TestScan(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes"})
	var all []string
	for i := range 100 {
		key := fmt.Sprintf("item/%03d", i)
		g.mustCommit(kerneltest.PutAt(key, "v", 0))
		all = append(all, key)
	}
	g.mustCommit(kerneltest.PutAt("other", "v", 0))
	tests := []struct {
		name    string
		request *kernelv1.ScanRequest
		want    []string
		pages   int
	}{
		{"all of a prefix", &kernelv1.ScanRequest{Prefix: "item/"}, all, 1},
		{"in pages", &kernelv1.ScanRequest{Prefix: "item/", Limit: 30}, all, 4},
		{"pages that fit exactly", &kernelv1.ScanRequest{Prefix: "item/", Limit: 50}, all, 2},
		{"a page as large as a read", &kernelv1.ScanRequest{Prefix: "item/", Limit: 16}, all, 7},
		{"behind a key", &kernelv1.ScanRequest{Prefix: "item/", After: "item/097"}, all[98:], 1},
		{"a limit that is too high", &kernelv1.ScanRequest{Prefix: "item/", Limit: 1 << 30}, all, 1},
		{"nothing", &kernelv1.ScanRequest{Prefix: "nothing"}, nil, 1},
		{"everything", &kernelv1.ScanRequest{}, append(slices.Clone(all), "other"), 1},
	}
	for _, test := range tests {
		if got, n := pages(t, g, test.request); !slices.Equal(got, test.want) || n != test.pages {
			t.Errorf("%s: %d keys in %d pages: %v", test.name, len(got), n, got)
		}
	}
}

func TestScanIsBoundedByBytes(t *testing.T) {
	w := newWorld(t)
	g := w.admit(bus.Actor{ID: "notes"})
	big := strings.Repeat("x", contract.MaxPayload)
	for i := range 20 {
		g.mustCommit(kerneltest.PutAt(fmt.Sprintf("%02d", i), big, 0))
	}
	if got, n := pages(t, g, &kernelv1.ScanRequest{}); len(got) != 20 || n < 3 {
		t.Errorf("%d values in %d pages", len(got), n)
	}
}
