package attachment

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
)

// slow is a body with a pause before each byte. It ends with its context.
type slow struct {
	ctx   context.Context //nolint:containedctx // that of the request
	from  *strings.Reader
	pause time.Duration
}

func (s slow) Read(into []byte) (int, error) {
	if s.from.Len() == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.pause):
		return s.from.Read(into[:1])
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s slow) Close() error { return nil }

func opening(text string, pause time.Duration) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		return slow{ctx, strings.NewReader(text), pause}, nil
	}
}

func TestADownloadThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, s := NewDownloads(time.Minute), &storing{}
		a, err := d.Store(t.Context(), s, contract.Attachment{Kind: "document"}, opening("hello", 50*time.Second))
		if err != nil || s.got != "hello" || a.Blob != "abc" {
			t.Errorf("a slow one is %+v with %q, %v", a, s.got, err)
		}
		_, err = d.Store(t.Context(), s, contract.Attachment{Kind: "document"}, opening("hello", 2*time.Minute))
		var failed *httpcall.Error
		if !errors.As(err, &failed) || !errors.Is(err, errStalled) {
			t.Errorf("one that stalls is %v", err)
		}
	})
}

func TestDownloadsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := NewDownloads(time.Minute)
		opened := make(chan struct{}, 100)
		for range downloadsAtOnce + 1 {
			go func() {
				_, err := d.Store(t.Context(), &storing{}, contract.Attachment{}, func(context.Context) (io.ReadCloser, error) {
					opened <- struct{}{}
					time.Sleep(time.Second)
					return nil, contract.ErrNotFound
				})
				if !errors.Is(err, contract.ErrNotFound) {
					t.Errorf("the error is %v", err)
				}
			}()
		}
		synctest.Wait()
		if len(opened) != downloadsAtOnce {
			t.Errorf("%d run at once", len(opened))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(opened) != downloadsAtOnce+1 {
			t.Errorf("%d have begun", len(opened))
		}
		time.Sleep(time.Second)
	})
}
