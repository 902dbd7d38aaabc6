package commitlog_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/switchboard-run/switchboard/store/commitlog"
)

func sealed(after commitlog.Position, body string) commitlog.Entry {
	return commitlog.Seal(after, commitlog.Entry{Epoch: 3, Incarnation: [16]byte{1, 2}, Kind: commitlog.Changes, Schema: 7,
		Time: 1 << 50, Body: []byte(body)})
}

// An entry is decoded as it was encoded, and any changed byte is noticed.
func TestAnEntryIsDecodedOrRefused(t *testing.T) {
	t.Parallel()
	first := sealed(commitlog.Position{}, "first")
	e := sealed(first.At(), "second")
	b := e.Encode()
	got, err := commitlog.Decode(b)
	if err != nil || !reflect.DeepEqual(got, e) || commitlog.Check(first.At(), got) != nil {
		t.Fatalf("decoded %+v, %v; encoded %+v", got, err, e)
	}
	for i := range b {
		b[i] ^= 0x40
		if got, err := commitlog.Decode(b); err == nil {
			err = commitlog.Check(first.At(), got)
			if !errors.Is(err, commitlog.ErrBroken) {
				t.Errorf("byte %d is another one: %v", i, err)
			}
		} else if !errors.Is(err, commitlog.ErrBroken) {
			t.Errorf("byte %d is another one: %v", i, err)
		}
		b[i] ^= 0x40
	}
	for n := range b {
		if _, err := commitlog.Decode(b[:n]); !errors.Is(err, commitlog.ErrBroken) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

// An entry fits only its predecessor.
func TestAnEntryFollowsItsPredecessor(t *testing.T) {
	t.Parallel()
	first, other := sealed(commitlog.Position{}, "first"), sealed(commitlog.Position{}, "other")
	second := sealed(first.At(), "second")
	for name, before := range map[string]commitlog.Position{
		"the beginning": {}, "another branch": other.At(), "itself": second.At(),
	} {
		if err := commitlog.Check(before, second); !errors.Is(err, commitlog.ErrBroken) {
			t.Errorf("after %s: %v", name, err)
		}
	}
}
