package door

import (
	"errors"
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

// Times of bodies. A sender that is slower than all of them allow is cut off.
const (
	bodyIdle  = 20 * time.Second // that a sender may send nothing
	bodyStart = 20 * time.Second // before the rate counts
	bodyRate  = 4 << 10          // bytes a second, of all since the start
	bodyDrain = time.Second      // for the rest of a body that nothing reads
)

// limitBody bounds the body of a request, and ends one that stalls or trickles.
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
	b := &body{
		ReadCloser: http.MaxBytesReader(w, r.Body, most), control: http.NewResponseController(w), begun: time.Now(),
	}
	b.move()
	r.Body = b
}

// endBody ends the body of a request that is refused: the server waits for the rest of it
// before it ends the connection.
func endBody(w http.ResponseWriter, r *http.Request) {
	if _, ok := r.Body.(*body); ok {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyDrain))
	}
}

// body moves the deadline with what arrived.
type body struct {
	io.ReadCloser
	control *http.ResponseController
	begun   time.Time
	read    int64
}

// move sets the deadline for the next bytes.
func (b *body) move() {
	deadline := time.Now().Add(bodyIdle)
	last := b.begun.Add(bodyStart + time.Duration(b.read)*time.Second/bodyRate)
	if last.Before(deadline) {
		deadline = last
	}
	_ = b.control.SetReadDeadline(deadline) // not all writers of tests have one
}

func (b *body) Read(p []byte) (int, error) {
	b.move()
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if errors.Is(err, io.EOF) { // after other errors the server would wait for the rest
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
