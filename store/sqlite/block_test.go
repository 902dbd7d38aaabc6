package sqlite

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/switchboard-run/switchboard/internal/seed"
	"github.com/switchboard-run/switchboard/kernel/journal"
)

// TestBlockKeepsDeliveries writes blocks and reads them again.
func TestBlockKeepsDeliveries(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(rt *rapid.T) {
		const first, subscription = 7 << blockBits, 3
		b := &block{id: blockOf(first, subscription)}
		want := map[int]journal.Delivery{}
		for range rapid.IntRange(0, 300).Draw(rt, "changes") {
			i := rapid.IntRange(0, blockSize-1).Draw(rt, "place")
			d, known := want[i]
			switch {
			case !known:
				key := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "key")
				d = journal.Delivery{Seq: first + int64(i), Subscription: subscription, Key: key,
					Rank: journal.RankOf(first + int64(i))}
				b.put(d)
			case rapid.Bool().Draw(rt, "leaves"):
				b.has.clear(i)
				delete(want, i)
				continue
			default:
				d.State, d.StartedAt, d.SettledAt = journal.Done, rapid.Int64().Draw(rt, "started"),
					rapid.Int64().Draw(rt, "settled")
				b.change(d)
			}
			want[i] = d
		}
		content := b.append(nil)
		read := &block{id: b.id}
		if err := read.read(content); err != nil {
			rt.Fatal(err)
		}
		if read.has.count() != len(want) {
			rt.Fatalf("it holds %d deliveries, want %d", read.has.count(), len(want))
		}
		for i := range read.has.all() {
			d := read.delivery(i)
			if d.Key = want[i].Key; d != want[i] {
				rt.Fatalf("it holds %+v, want %+v", d, want[i])
			}
			if read.loose.get(i) != (d.Key == "") || d.State == journal.Pending && d.Key != "" &&
				read.lane[i] != laneHash(d.Key) {
				rt.Fatalf("the lane of %+v is not kept", d)
			}
		}
		if len(content) > 0 {
			cut := rapid.IntRange(0, len(content)-1).Draw(rt, "cut")
			if err := new(block).read(content[:cut]); !errors.Is(err, journal.ErrDamaged) {
				rt.Fatalf("%d of %d bytes are read as a block (%v)", cut, len(content), err)
			}
			if err := new(block).read(append(content, 0)); !errors.Is(err, journal.ErrDamaged) {
				rt.Fatalf("a byte too many is read as a block (%v)", err)
			}
		}
	})
}

// TestLaneHash is what stores have been written with.
func TestLaneHash(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]uint16{"": 0, "a": 0xbe43, "telegram/42": 0x8fee} {
		if got := laneHash(key); got != want {
			t.Errorf("the hash of %q is %#x, want %#x", key, got, want)
		}
	}
}

// FuzzBlock reads anything: what is read is written as the same.
func FuzzBlock(f *testing.F) {
	b := block{}
	for i := range int64(3) {
		b.put(journal.Delivery{Seq: i, Key: []string{"", "a", "b"}[i]})
	}
	b.change(journal.Delivery{Seq: 1, State: journal.Done, StartedAt: 5, SettledAt: 4})
	f.Add(b.append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		var b, again block
		if b.read(content) != nil {
			return
		}
		if err := again.read(b.append(nil)); err != nil || again != b {
			t.Errorf("it is read as %v, and that as %v (%v)", b, again, err)
		}
	})
}
