package sqlite

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"math/bits"

	"github.com/switchboard-run/switchboard/kernel/journal"
)

const (
	blockBits = 8
	blockSize = 1 << blockBits // events

	// The id of a block is the number of its events' block, and the subscription.
	subscriptionBits = 20
	maxSubscription  = 1<<subscriptionBits - 1
)

// block holds deliveries of one subscription, for blockSize consecutive events.
type block struct {
	id               int64
	has              bitmap // the delivery is in the block
	done             bitmap
	loose            bitmap // outside of all lanes
	lane             [blockSize]uint16
	started, settled [blockSize]int64 // Unix microseconds
	dirty            bool             // changed since it was read or written
	stored           bool
}

// bitmap has a bit for each event of a block.
type bitmap [blockSize / 64]uint64

func (m *bitmap) get(i int) bool { return m[i/64]>>(i%64)&1 != 0 }
func (m *bitmap) set(i int)      { m[i/64] |= 1 << (i % 64) }
func (m *bitmap) clear(i int)    { m[i/64] &^= 1 << (i % 64) }

func (m *bitmap) count() (n int) {
	for _, word := range m {
		n += bits.OnesCount64(word)
	}
	return n
}

func (m *bitmap) without(other *bitmap) (rest bitmap) {
	for i := range m {
		rest[i] = m[i] &^ other[i]
	}
	return rest
}

// all goes through the bits that are set, ascending.
func (m *bitmap) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range m {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// blockOf is the id of the block of a delivery.
func blockOf(seq, subscription int64) int64 { return numberOf(seq)<<subscriptionBits | subscription }

// numberOf is the number of the block of an event, the same for all subscriptions.
func numberOf(seq int64) int64 { return seq >> blockBits }

func (b *block) number() int64       { return b.id >> subscriptionBits }
func (b *block) subscription() int64 { return b.id & maxSubscription }
func (b *block) seq(i int) int64     { return b.number()<<blockBits + int64(i) }
func placeOf(seq int64) int          { return int(seq & (blockSize - 1)) }

// waiting returns the unsettled deliveries.
func (b *block) waiting() bitmap { return b.has.without(&b.done) }

// plain reports whether a block can represent a delivery.
func plain(d journal.Delivery) bool {
	waits := d.State == journal.Pending && d.StartedAt == 0 && d.SettledAt == 0
	return (waits || d.State == journal.Done) && d.Attempts == 0 && d.NotBefore == 0 && !d.Uncertain && d.Reason == "" &&
		d.ProviderID == "" && d.Conversation == 0 && d.Rank == journal.RankOf(d.Seq) && d.Resubmitted == 0 &&
		d.Subscription >= 0 && d.Subscription <= maxSubscription
}

// put adds a plain delivery.
func (b *block) put(d journal.Delivery) {
	i := placeOf(d.Seq)
	b.has.set(i)
	b.loose.clear(i)
	if b.lane[i] = laneHash(d.Key); d.Key == "" {
		b.loose.set(i)
	}
	b.change(d)
}

// change updates a plain delivery of the block.
func (b *block) change(d journal.Delivery) {
	i := placeOf(d.Seq)
	if b.done.clear(i); d.State == journal.Done {
		b.done.set(i)
	}
	b.started[i], b.settled[i] = d.StartedAt, d.SettledAt
}

// delivery returns the one at a place, without its key.
func (b *block) delivery(i int) journal.Delivery {
	d := journal.Delivery{Seq: b.seq(i), Subscription: b.subscription(), Rank: journal.RankOf(b.seq(i))}
	if b.done.get(i) {
		d.State, d.StartedAt, d.SettledAt = journal.Done, b.started[i], b.settled[i]
	}
	return d
}

// laneHash must not change: the store contains its results.
func laneHash(key string) uint16 { return uint16(crc32.ChecksumIEEE([]byte(key))) }

// append encodes the block: its bitmaps; then for each delivery in order, if it is
// done, the start of its attempt as the difference to the previous one, and the time
// from there to its settlement; else the hash of its lane, if it has one.
func (b *block) append(buf []byte) []byte {
	for _, m := range []*bitmap{&b.has, &b.done, &b.loose} {
		for _, word := range m {
			buf = binary.LittleEndian.AppendUint64(buf, word)
		}
	}
	started := int64(0)
	for i := range b.has.all() {
		switch {
		case b.done.get(i):
			buf = binary.AppendVarint(buf, b.started[i]-started)
			buf = binary.AppendVarint(buf, b.settled[i]-b.started[i])
			started = b.started[i]
		case !b.loose.get(i):
			buf = binary.LittleEndian.AppendUint16(buf, b.lane[i])
		}
	}
	return buf
}

// read decodes what append has encoded.
func (b *block) read(content []byte) error {
	rest := content
	for _, m := range []*bitmap{&b.has, &b.done, &b.loose} {
		for i := range m {
			if len(rest) < 8 {
				return b.damaged(content)
			}
			m[i], rest = binary.LittleEndian.Uint64(rest), rest[8:]
		}
	}
	started := int64(0)
	for i := range b.has.all() {
		switch {
		case b.done.get(i):
			since, n := binary.Varint(rest)
			took, m := binary.Varint(rest[max(n, 0):])
			if n <= 0 || m <= 0 {
				return b.damaged(content)
			}
			rest = rest[n+m:]
			started += since
			b.started[i], b.settled[i] = started, started+took
		case !b.loose.get(i):
			if len(rest) < 2 {
				return b.damaged(content)
			}
			b.lane[i], rest = binary.LittleEndian.Uint16(rest), rest[2:]
		}
	}
	if len(rest) > 0 {
		return b.damaged(content)
	}
	return nil
}

func (b *block) damaged(content []byte) error {
	return fmt.Errorf("%w (the deliveries of subscription %d for the events from %d on cannot be read from %d bytes): %s",
		journal.ErrDamaged, b.subscription(), b.seq(0), len(content), hintDamaged)
}
