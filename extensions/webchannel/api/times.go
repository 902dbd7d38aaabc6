package api

import (
	"crypto/rand"
	"errors"
	"io"
	"time"
)

// moment is a time of the contract; nil: not known.
func moment(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	at := time.UnixMicro(us).UTC()
	return &at
}

// newID returns an id that no other thing has.
func newID() string { return rand.Text() }

// notEOF drops the error with which a stream of the kernel ends.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
