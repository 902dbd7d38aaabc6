package clichannel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk"
)

const (
	// keepFiles is how long a file of a conversation can be saved.
	keepFiles = 30 * 24 * time.Hour
	// removeEvery is how often, at most, older ones are removed.
	removeEvery = 24 * time.Hour
	// removeAtOnce is how many of them one commit removes.
	removeAtOnce = 500
	filePrefix   = "file/"
)

// fileStore is the part of *sdk.Kernel that keeps files.
type fileStore interface {
	Commit(ctx context.Context, effects ...sdk.Effect) ([]*busv1.EffectResult, error)
	Page(ctx context.Context, prefix, after string, limit int) (page []sdk.Value, more bool, err error)
	GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error)
}

// files keeps the files of conversations, so that their terminals can save them.
type files struct {
	store fileStore
	now   func() time.Time

	mu      sync.Mutex
	removed time.Time // when old ones were last removed
}

// keptFile is a value of the store.
type keptFile struct {
	contract.Attachment
	At int64 `json:"at"` // Unix seconds
}

func fileKey(conversation, digits string) string {
	return filePrefix + url.PathEscape(conversation) + "/" + digits
}

// keep returns the effects that keep the files of a message.
func (f *files) keep(conversation string, all []contract.Attachment) (effects sdk.Effects) {
	for _, a := range all {
		if a.Blob != "" {
			effects = append(effects,
				sdk.Put(fileKey(conversation, a.Blob), keptFile{a, f.now().Unix()}).Keep(a.Blob))
		}
	}
	return effects
}

// keepSent keeps the files of a message from an agent, which may know only digits of
// them, and returns what is known of them.
func (f *files) keepSent(
	ctx context.Context, conversation string, sent []contract.Attachment,
) (all []contract.Attachment, err error) {
	all = slices.Clone(sent)
	for i, a := range all {
		if a.Blob != "" && a.Name == "" {
			if known, err := f.find(ctx, conversation, a.Blob); err == nil {
				all[i] = known.Attachment
			}
		}
	}
	keep := f.keep(conversation, all)
	if len(keep) == 0 {
		return all, nil
	}
	if _, err := f.store.Commit(ctx, keep...); err != nil {
		return nil, fmt.Errorf("keep the files of a message: %w", err)
	}
	return all, nil
}

// find returns a file of a conversation, or of the messages to everyone.
func (f *files) find(ctx context.Context, conversation, reference string) (found keptFile, err error) {
	asked, err := contract.ParseReference(reference)
	if err != nil {
		return found, words.Errorf("%q is no file: write it as in the conversation, such as 3f2a9c", reference)
	}
	for _, place := range []string{conversation, ""} {
		page, _, err := f.store.Page(ctx, fileKey(place, asked.Blob), "", 2)
		if err != nil {
			return found, err
		}
		for _, v := range page {
			known := found.Blob
			if err := v.Decode(&found); err != nil {
				return found, err
			}
			if known != "" && known != found.Blob {
				return found, words.Errorf("several files begin with %s: give more digits of it", asked.Blob)
			}
		}
	}
	if found.Blob == "" {
		return found, words.Errorf("there is no file %s in this conversation, or it is older than 30 days", asked.Blob)
	}
	return found, nil
}

// send sends a file to a terminal.
func (f *files) send(ctx context.Context, conn *wire.Conn, id string, a contract.Attachment) error {
	if err := conn.Write(wire.Frame{Type: wire.File, ID: id, Attachments: []contract.Attachment{a}}); err != nil {
		return err
	}
	if _, err := f.store.GetBlob(ctx, a.Blob, chunks(func(part []byte) error {
		return conn.Write(wire.Frame{Type: wire.File, ID: id, Data: part})
	})); err != nil {
		return err
	}
	return conn.Write(wire.Frame{Type: wire.File, ID: id, Done: true})
}

// chunks writes in parts that fit into a frame.
type chunks func(part []byte) error

func (c chunks) Write(p []byte) (written int, err error) {
	for len(p) > written {
		part := p[written:min(len(p), written+wire.Chunk)]
		if err := c(part); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

// removeOld stops keeping files that are older than keepFiles.
func (f *files) removeOld(ctx context.Context) error {
	now := f.now()
	f.mu.Lock()
	recent := now.Sub(f.removed) < removeEvery
	if !recent {
		f.removed = now
	}
	f.mu.Unlock()
	if recent {
		return nil
	}
	for after, more := "", true; more; {
		var page []sdk.Value
		var err error
		if page, more, err = f.store.Page(ctx, filePrefix, after, removeAtOnce); err != nil {
			return err
		}
		var old sdk.Effects
		for _, v := range page {
			var file keptFile
			if v.Decode(&file) != nil || now.Sub(time.Unix(file.At, 0)) > keepFiles {
				old = append(old, sdk.DeleteAt(v.Key, v.Version))
			}
			after = v.Key
		}
		if len(old) > 0 {
			if _, err := f.store.Commit(ctx, old...); err != nil && !errors.Is(err, contract.ErrConflict) {
				return err
			}
		}
	}
	return nil
}

// maxFetches is how many files a terminal can be sent at once.
const maxFetches = 8

// fetches are the files that a terminal is being sent.
type fetches struct {
	running sync.WaitGroup
	slots   chan struct{}
}

// fetch sends a file that a terminal asked for.
func (s *server) fetch(ctx context.Context, t *terminal, f wire.Frame) {
	refuse := func(err error) { t.queue.put(wire.Frame{Type: wire.Error, ID: f.ID, Text: err.Error()}) }
	select {
	case t.fetches.slots <- struct{}{}:
	default:
		refuse(words.Errorf("%d files are being saved: try again later", maxFetches))
		return
	}
	t.fetches.running.Go(func() {
		defer func() { <-t.fetches.slots }()
		found, err := s.files.find(ctx, t.conversation, strings.TrimSpace(f.Text))
		if err == nil {
			err = s.files.send(ctx, t.conn, f.ID, found.Attachment)
		}
		if err != nil {
			s.kernel.Log().Debug("send a file to a terminal", "terminal", t.id, "error", err)
			refuse(err)
		}
	})
}

// removeOldFiles makes room for new files.
func (s *server) removeOldFiles(ctx context.Context) {
	if err := s.files.removeOld(ctx); err != nil {
		s.kernel.Log().Warn("remove old files of conversations", "error", err)
	}
}
