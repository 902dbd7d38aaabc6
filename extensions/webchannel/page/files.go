package page

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/httpstatus"
)

// upload stores the body as a file, for a message to come.
func (c *chats) upload(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if !v.May(door.ScopeMessages, true) {
		Problem(w, r, errNotAllowed)
		return
	}
	claimed := contract.Attachment{
		Kind: contract.KindDocument, Name: r.URL.Query().Get("name"), MIME: r.Header.Get("Content-Type"),
	}
	switch kind := r.URL.Query().Get("kind"); kind {
	case contract.KindVoice, contract.KindAudio, contract.KindVideo, contract.KindImage:
		claimed.Kind = kind
	}
	a, err := c.Files.Upload(r.Context(), v, claimed, r.Body)
	if err != nil {
		Problem(w, r, err)
		return
	}
	Reply(w, map[string]any{"blob": a.Blob, "name": fileView{a}.Label(), "size": a.Size})
}

// filePolicy is for what a file may do if a browser shows it: nothing.
const filePolicy = "sandbox; default-src 'none'"

// download serves a file of the visitor's own lines. Only pictures are shown; all others are
// saved.
func (c *chats) download(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if !v.May(door.ScopeMessages, false) {
		Refuse(w, r, http.StatusForbidden)
		return
	}
	blob := r.PathValue("blob")
	a, err := c.Files.File(r.Context(), v, blob)
	if err != nil {
		status := httpstatus.Of(err)
		if status == http.StatusInternalServerError {
			c.Log.Warn("read a file", "error", err)
		}
		Refuse(w, r, status)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", filePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, max-age=3600")
	h.Set("ETag", `"`+a.Blob+`"`)
	h.Set("Content-Type", servedType(a.MIME))
	how := "attachment"
	if contract.IsImageType(a.MIME) {
		how = "inline"
	}
	h.Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": fileView{a}.Label()}))
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	file := &seeker{size: a.Size, open: func(to io.Writer) error { return c.Files.WriteFile(ctx, v, a.Blob, to) }}
	defer file.close()
	http.ServeContent(w, r, "", time.Time{}, file)
}

// media are the types that the page plays.
var media = []string{
	"audio/mpeg", "audio/mp4", "audio/x-m4a", "audio/aac", "audio/ogg", "audio/wav", "audio/flac", "audio/webm",
	"video/mp4", "video/webm", "video/ogg", "video/quicktime",
}

// servedType is the type with which a file is served: that of media, which the page plays, and
// else one that no browser runs.
func servedType(kind string) string {
	if contract.IsImageType(kind) || slices.Contains(media, kind) {
		return kind
	}
	return "application/octet-stream"
}

// seeker reads a file from any place on, as http.ServeContent needs it.
type seeker struct {
	size, at int64
	open     func(io.Writer) error
	from     *io.PipeReader
}

// Seek implements io.Seeker.
func (s *seeker) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of a file")
	}
	if offset != s.at {
		s.close()
	}
	s.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (s *seeker) Read(b []byte) (int, error) {
	if s.from == nil {
		from, to := io.Pipe()
		s.from = from
		skip := s.at
		go func() { to.CloseWithError(s.open(&skipper{to, skip})) }()
	}
	n, err := s.from.Read(b)
	s.at += int64(n)
	return n, err
}

func (s *seeker) close() {
	if s.from != nil {
		_ = s.from.Close()
		s.from = nil
	}
}

// skipper leaves out the first bytes.
type skipper struct {
	to   io.Writer
	skip int64
}

// Write implements io.Writer.
func (s *skipper) Write(b []byte) (int, error) {
	n := len(b)
	if skipped := min(s.skip, int64(n)); skipped > 0 {
		s.skip -= skipped
		b = b[skipped:]
	}
	if len(b) == 0 {
		return n, nil
	}
	_, err := s.to.Write(b)
	return n, err
}
