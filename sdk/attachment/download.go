package attachment

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// downloadsAtOnce bounds concurrent downloads.
const downloadsAtOnce = 8

// errStalled is the cause of a download that made no progress.
var errStalled = errors.New("the download made no progress")

// Downloads stores files while they are downloaded, several at once.
type Downloads struct {
	stall time.Duration
	slots chan struct{} // one for each that runs
}

// NewDownloads returns downloads that end when they make no progress for a time.
func NewDownloads(stall time.Duration) *Downloads {
	return &Downloads{stall: stall, slots: make(chan struct{}, downloadsAtOnce)}
}

// Store stores the file of an attachment, which open requests. An error of open is returned
// as it is; that of a transfer that breaks off or stalls is an *httpcall.Error.
func (d *Downloads) Store(ctx context.Context, to Storage, a contract.Attachment,
	open func(context.Context) (io.ReadCloser, error),
) (contract.Attachment, error) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer stalled.Stop()
	body, err := open(ctx)
	if err != nil {
		return a, err
	}
	defer func() { _ = body.Close() }()
	got, err := Store(ctx, to, a, progress{body, func() { stalled.Reset(d.stall) }})
	switch {
	case err == nil:
		return got, nil
	case errors.Is(err, contract.ErrTooLarge):
		return a, err
	case context.Cause(ctx) != nil:
		return a, &httpcall.Error{Err: context.Cause(ctx)}
	}
	return a, err
}

// progress is the body of a download. Its errors are of type *httpcall.Error.
type progress struct {
	io.Reader
	made func()
}

func (p progress) Read(into []byte) (int, error) {
	n, err := p.Reader.Read(into)
	if n > 0 {
		p.made()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &httpcall.Error{Err: err}
	}
	return n, err
}
