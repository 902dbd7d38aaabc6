package api

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

// uploads fails beyond four bytes more than maxBody, as the chat does beyond 50 MiB.
type uploads struct{ chat.Files }

func (uploads) Upload(
	_ context.Context, _ door.Visitor, claimed contract.Attachment, from io.Reader,
) (contract.Attachment, error) {
	n, err := io.Copy(io.Discard, io.LimitReader(from, maxBody+5))
	if err == nil && n > maxBody+4 {
		err = contract.ErrTooLarge
	}
	claimed.Blob, claimed.Size, claimed.MIME = strings.Repeat("a", 64), n, "text/plain"
	return claimed, err
}

func TestFilesAreUploadedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const path = "POST /api/v1/files?name=a.txt"
	for _, size := range []int{0, 5, maxBody + 4} { // more than other requests may have
		var got Attachment
		w.must(t, "messages", path, strings.Repeat("x", size), &got, keyHeader, "k")
		if got.Name != "a.txt" || got.Size != int64(size) || len(got.Blob) != 64 {
			t.Errorf("%d bytes: %+v", size, got)
		}
	}
	if got := w.do(t, "messages", path, strings.Repeat("x", maxBody+5)); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large: %d", got.status)
	}
	if got := w.do(t, "reader", path, "x"); got.status != http.StatusForbidden {
		t.Errorf("without the scope: %d", got.status)
	}
}
