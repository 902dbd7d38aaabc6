package storetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

// hashOf is a hash that begins with the digits.
func hashOf(digits string) string { return digits + strings.Repeat("0", 64-len(digits)) }

// testBlobs keeps blobs by every kind of keeper, ends each in the way that ends it, and
// expects that a blob is swept when nothing keeps it any more, and not before.
func testBlobs(t *testing.T, open Open) {
	f := start(t, open)
	held, shared, value, session := hashOf("aa"), hashOf("ab"), hashOf("b"), hashOf("c")
	all := []string{held, shared, value, session}
	var chat journal.Session
	f.do(func(tx journal.Tx) {
		for i, hash := range all {
			must(tx.HoldBlob(journal.Blob{Hash: hash, Size: int64(i + 1), Owner: "x", CreatedAt: 7}, "x", 100))
		}
		must(tx.HoldBlob(journal.Blob{Hash: held, Size: 99, Owner: "y", CreatedAt: 9}, "y", 300))
		chat = journal.Session{Agent: "a", Key: "k"}
		must(tx.PutSession(&chat))
		appendEvent(tx, "a.b")
		appendEvent(tx, "a.b")
		appendEvent(tx, "a.b")
		must(tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByEvent, ID: 1}, []string{shared, shared}))
		must(tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByEvent, ID: 2}, []string{shared}))
		ok(tx.KVPut("x", "k", []byte("v")))
		must(tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByValue, Owner: "x", Key: "k"}, []string{value}))
		must(tx.KeepBlobs(journal.Keeper{Kind: journal.KeptBySession, ID: chat.ID}, []string{session}))
		err := tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByEvent, ID: 1}, []string{hashOf("d")})
		if !errors.Is(err, journal.ErrNoBlob) {
			t.Errorf("keeping a blob that is not stored gives %v", err)
		}
	})
	f.reopen()
	sweep := func(now int64, want ...string) {
		t.Helper()
		f.do(func(tx journal.Tx) {
			gone, last, err := tx.SweepBlobs(now, "", 10)
			if must(err); !slices.Equal(gone, want) || last != "" {
				t.Errorf("at %d these are swept: %q to %q, want %q", now, gone, last, want)
			}
		})
	}
	sweep(99)
	f.view(func(r journal.Reader) {
		if b := ok(r.Blob(held)); b == nil || *b != (journal.Blob{Hash: held, Size: 1, Owner: "x", CreatedAt: 7}) {
			t.Errorf("a blob that was stored twice is %+v", b)
		}
		if n := ok(r.BlobBytes("x")); n != 10 {
			t.Errorf("the blobs of x have %d bytes", n)
		}
		if n := ok(r.BlobBytes("y")); n != 0 {
			t.Errorf("the blobs of y have %d bytes", n)
		}
		if n := ok(r.BlobBytes("")); n != 10 {
			t.Errorf("all blobs have %d bytes", n)
		}
		for k, hash := range map[journal.Keeper]string{
			{Kind: journal.KeptByHold, Owner: "x"}:            held,
			{Kind: journal.KeptByHold, Owner: "y"}:            held,
			{Kind: journal.KeptByEvent, ID: 1}:                shared,
			{Kind: journal.KeptByValue, Owner: "x", Key: "k"}: value,
			{Kind: journal.KeptByValue, Owner: "x"}:           value,
			{Kind: journal.KeptBySession, ID: chat.ID}:        session,
		} {
			if !ok(r.Keeps(k, hash)) {
				t.Errorf("%+v does not keep %s", k, hash[:4])
			}
			if ok(r.Keeps(k, hashOf("e"))) {
				t.Errorf("%+v keeps what is not there", k)
			}
		}
		if ok(r.Keeps(journal.Keeper{Kind: journal.KeptByValue, Owner: "y"}, value)) {
			t.Error("another extension's value keeps a blob")
		}
		found := ok(r.KeptBlobs(journal.Keeper{Kind: journal.KeptByHold, Owner: "x"}, "a", 1))
		if len(found) != 1 || found[0].Hash != held {
			t.Errorf("the first held blob that begins with a is %+v", found)
		}
		if found = ok(r.KeptBlobs(journal.Keeper{Kind: journal.KeptByHold, Owner: "x"}, "ab", 9)); len(found) != 1 {
			t.Errorf("held blobs that begin with ab: %+v", found)
		}
	})
	sweep(101) // held by y
	f.do(func(tx journal.Tx) {
		ok(tx.KVPut("x", "k", []byte("w")))
		must(tx.DeleteSession(chat.ID))
	})
	sweep(101, value, session)
	sweep(301, held)
	prune := func() {
		f.do(func(tx journal.Tx) { ok(tx.Prune(1<<60, 1<<60, 1)) })
	}
	prune()
	sweep(301)
	prune()
	sweep(301, shared)
	f.view(func(r journal.Reader) {
		if b := ok(r.Blob(shared)); b != nil {
			t.Errorf("a swept blob is %+v", b)
		}
	})
}

// testBlobsOfValues replaces and deletes values after a reopening.
func testBlobsOfValues(t *testing.T, open Open) {
	f := start(t, open)
	keep := func(key, hash string) {
		f.do(func(tx journal.Tx) {
			must(tx.HoldBlob(journal.Blob{Hash: hash, Size: 1, Owner: "x"}, "x", 1))
			ok(tx.KVPut("x", key, []byte("v")))
			must(tx.KeepBlobs(journal.Keeper{Kind: journal.KeptByValue, Owner: "x", Key: key}, []string{hash}))
		})
	}
	keep("deleted", hashOf("a"))
	keep("replaced", hashOf("b"))
	keep("kept", hashOf("c"))
	f.reopen()
	after := ""
	f.do(func(tx journal.Tx) {
		must(tx.KVDelete("x", "deleted"))
		ok(tx.KVPut("x", "replaced", []byte("w")))
		ok(tx.KVPut("y", "kept", []byte("of another")))
		for _, step := range []struct {
			limit int
			gone  string
			last  string
		}{{1, hashOf("a"), hashOf("a")}, {1, hashOf("b"), hashOf("b")}, {2, "", ""}} {
			gone, last, err := tx.SweepBlobs(2, after, step.limit)
			if must(err); strings.Join(gone, " ") != step.gone || last != step.last {
				t.Errorf("after %q these are swept: %q to %q, want %+v", after, gone, last, step)
			}
			after = last
		}
		if n := ok(tx.BlobBytes("x")); n != 1 {
			t.Errorf("what is left has %d bytes", n)
		}
	})
}
