package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// testKVVersions checks that no version of a key is used twice.
func testKVVersions(t *testing.T, open Open) {
	f := start(t, open)
	var highest int64
	put := func(tx journal.Tx, value string) {
		version := ok(tx.KVPut("x", "k", []byte(value)))
		if version <= highest {
			t.Errorf("putting %q gives version %d, after %d", value, version, highest)
		}
		highest = version
		if v := ok(tx.KVGet("x", "k")); v.Version != version || string(v.Value) != value {
			t.Errorf("after putting %q the key is %q, version %d", value, v.Value, v.Version)
		}
	}
	for range 3 {
		f.do(func(tx journal.Tx) {
			for i := range 5 {
				put(tx, fmt.Sprint(i))
			}
			must(tx.KVDelete("x", "k"))
			if v := ok(tx.KVGet("x", "k")); v.Version != 0 {
				t.Errorf("a deleted key has version %d", v.Version)
			}
			put(tx, "again")
			must(tx.KVDelete("x", "k"))
			must(tx.KVDelete("x", "k"))
			must(tx.KVDelete("x", "never there"))
		})
		f.reopen()
		f.do(func(tx journal.Tx) { put(tx, "reopened") })
	}
	f.do(func(tx journal.Tx) {
		if v := ok(tx.KVGet("y", "k")); v.Version != 0 || v.Key != "k" {
			t.Errorf("another owner's key is %+v", v)
		}
	})
}

func testKVScan(t *testing.T, open Open) {
	f := start(t, open)
	keys := []string{
		"a", "a/", "a/1", "a/2", "a/2/x", "a0", "a%", "a%25", "a_", "A", "ÿ", "ÿÿ", "é", "e\u0301", "\U0010ffff",
		"\U0010ffff/z",
		"日本", "\x00", "\x00\x00", "a\x00b", "\x7f", "~", "'quoted'", " ", strings.Repeat("long", 250),
	}
	f.do(func(tx journal.Tx) {
		for _, k := range keys {
			ok(tx.KVPut("x", k, []byte("of "+k)))
			ok(tx.KVPut("x2", k, nil))
		}
	})
	slices.Sort(keys)
	f.view(func(r journal.Reader) {
		for _, prefix := range []string{"", "a", "a/", "a%", "a_", "ÿ", "é", "e", "\U0010ffff", "\x00", "日", "'",
			"nothing", "a\x00"} {
			var want []string
			for _, k := range keys {
				if strings.HasPrefix(k, prefix) {
					want = append(want, k)
				}
			}
			for _, limit := range []int{0, 1, 2, 7} {
				var got []string
				for after := ""; ; after = got[len(got)-1] {
					page := ok(r.KVScan("x", prefix, after, limit))
					for _, v := range page {
						if got = append(got, v.Key); string(v.Value) != "of "+v.Key || v.Version == 0 {
							t.Errorf("scanning finds %q with value %q, version %d", v.Key, v.Value, v.Version)
						}
					}
					if len(page) == 0 || limit == 0 {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("scanning %q by %d: %q, want %q", prefix, limit, got, want)
				}
			}
		}
		if got := ok(r.KVScan("x", "b", "a", 0)); len(got) != 0 {
			t.Errorf("scanning behind a key in front of the prefix finds %d keys without it", len(got))
		}
		if got := ok(r.KVScan("x", "a", "b", 0)); len(got) != 0 {
			t.Errorf("scanning behind the prefix finds %d keys", len(got))
		}
	})
}

// testOddContent stores and reads texts and bytes that an engine might change.
func testOddContent(t *testing.T, open Open) {
	f := start(t, open)
	for i, value := range [][]byte{nil, {}, {0}, {0xff, 0xfe, 0}, []byte("'; DROP TABLE event; --"), make([]byte, 1<<20)} {
		f.do(func(tx journal.Tx) { ok(tx.KVPut("x", "k", value)) })
		f.view(func(r journal.Reader) {
			if v := ok(r.KVGet("x", "k")); string(v.Value) != string(value) {
				t.Errorf("value %d: stored %d bytes, read %d others", i, len(value), len(v.Value))
			}
		})
	}
	for _, text := range []string{"", "NULL", "0", "1e5", "\x00tail", "日本\U0001f980", "line\nbreak"} {
		e := event("a.b", 0)
		e.Key, e.Payload = text, []byte(text)
		f.do(func(tx journal.Tx) { must(tx.AppendEvent(e)) })
		f.view(func(r journal.Reader) {
			if got := ok(r.Event(e.GetSeq())); got.GetKey() != text || string(got.GetPayload()) != text {
				t.Errorf("the text %q came back as %q and %q", text, got.GetKey(), got.GetPayload())
			}
		})
	}
}
