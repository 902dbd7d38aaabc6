package clichannel

import (
	"context"
	"errors"
	"io"
	"mime"
	"path"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/sdk/attachment"
)

// uploads are the files that a terminal has sent and that no message has named yet. Only
// the goroutine that reads the terminal uses them.
type uploads struct {
	storage attachment.Storage
	current *upload
	done    map[string]upload // by id
}

// upload is one file. Its result arrives once the last part was written.
type upload struct {
	id     string
	parts  *io.PipeWriter
	result chan stored
}

type stored struct {
	file contract.Attachment
	err  error
}

func newUploads(storage attachment.Storage) *uploads {
	return &uploads{storage: storage, done: map[string]upload{}}
}

var (
	errCutOff       = errors.New("the terminal sent only a part of the file")
	errTooManyFiles = words.Errorf("a message can have %d files", wire.MaxFiles)
	errMissingFile  = words.Errorf("its file has not arrived")
)

// add stores a part of a file. An error ends the connection.
func (u *uploads) add(ctx context.Context, f wire.Frame) error {
	if u.current != nil && u.current.id != f.ID {
		u.abort()
	}
	if u.current == nil {
		if len(u.done) == wire.MaxFiles {
			return errTooManyFiles
		}
		from, to := io.Pipe()
		u.current = &upload{id: f.ID, parts: to, result: make(chan stored, 1)}
		go func(result chan<- stored) {
			a, err := attachment.Store(ctx, u.storage, claimed(f.Name), from)
			_ = from.Close() // later parts are dropped
			result <- stored{a, err}
		}(u.current.result)
	}
	_, _ = u.current.parts.Write(f.Data) // what failed is in the result
	if f.Done {
		_ = u.current.parts.Close()
		u.done[f.ID], u.current = *u.current, nil
	}
	return nil
}

// claimed is what the name of a file says about it.
func claimed(name string) contract.Attachment {
	a := contract.Attachment{Kind: contract.KindDocument, Name: name, MIME: mime.TypeByExtension(path.Ext(name))}
	switch family, _, _ := strings.Cut(a.MIME, "/"); family {
	case "audio":
		a.Kind = contract.KindAudio
	case "video":
		a.Kind = contract.KindVideo
	}
	return a
}

// take returns the files of a message, when they are stored.
func (u *uploads) take(ids []string) (files []contract.Attachment, err error) {
	for _, id := range ids {
		f, ok := u.done[id]
		if !ok {
			return nil, errMissingFile
		}
		delete(u.done, id)
		r := <-f.result
		if r.err != nil {
			return nil, r.err
		}
		files = append(files, r.file)
	}
	return files, nil
}

// abort drops the file that is arriving.
func (u *uploads) abort() {
	if u.current != nil {
		_ = u.current.parts.CloseWithError(errCutOff)
		<-u.current.result
		u.current = nil
	}
}
