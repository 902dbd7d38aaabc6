package door

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Limits of bodies, in bytes.
const (
	MaxBody  = 1 << 20  // of most requests
	MaxImage = 24 << 20 // of requests that carry images as text
	MaxFile  = 51 << 20 // of uploads: a file of 50 MiB and its form
)

// bodyIdle is how long a sender may send nothing.
const bodyIdle = 20 * time.Second

// limitBody bounds the body of a request, and ends one that stalls.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	most := int64(MaxBody)
	switch {
	case r.URL.Path == "/files", r.URL.Path == "/api/v1/files":
		most = MaxFile
	case strings.HasPrefix(r.URL.Path, "/v1/"):
		most = MaxImage
	}
	r.Body = &body{ReadCloser: http.MaxBytesReader(w, r.Body, most), control: http.NewResponseController(w)}
}

// body moves the deadline with each read.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(bodyIdle)) // not all writers of tests have one
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
