package openaiapi

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/netguard"
)

const (
	maxImage     = 20 << 20 // bytes of a file that is fetched
	fetchTimeout = 30 * time.Second
	maxRedirects = 3
)

// upload stores the files of a message.
func (s *server) upload(ctx context.Context, v door.Visitor, files []file) (all []contract.Attachment, err error) {
	for _, f := range files {
		a, err := s.uploadOne(ctx, v, f)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

func (s *server) uploadOne(ctx context.Context, v door.Visitor, f file) (a contract.Attachment, err error) {
	from, err := s.open(ctx, f)
	if err != nil {
		return a, err
	}
	defer func() { _ = from.Close() }()
	if a, err = s.Files.Upload(ctx, v, f.claimed, from); err != nil {
		if _, corrupt := errors.AsType[base64.CorruptInputError](err); corrupt {
			return a, invalid(f.param, "The data isn't base64: %v.", err)
		}
		return a, err
	}
	switch {
	case a.Size == 0:
		return a, invalid(f.param, "The file is empty.")
	case f.claimed.Kind == contract.KindImage && a.Kind != contract.KindImage:
		return a, invalid(f.param, "This is no image (JPEG, PNG, GIF or WebP), but %s.", a.MIME)
	}
	return a, nil
}

// open returns the bytes of a file.
func (s *server) open(ctx context.Context, f file) (io.ReadCloser, error) {
	if rest, is := strings.CutPrefix(f.address, "data:"); is {
		kind, data, found := strings.Cut(rest, ",")
		if !found || !strings.HasSuffix(kind, ";base64") {
			return nil, invalid(f.param, "A data: address has the form data:image/png;base64,...")
		}
		data = strings.TrimRight(data, "=")
		return io.NopCloser(base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(data))), nil
	}
	u, err := url.Parse(f.address)
	if err != nil || u.Scheme != "https" {
		return nil, invalid(f.param, "The address has to begin with https:// or data:.")
	}
	if err := s.Images.CheckURL(u); err != nil {
		return nil, invalid(f.param, "The address can't be used: %v.", err)
	}
	return s.fetch(ctx, f, u)
}

// fetch downloads a file from where the network's own hosts can't be reached.
func (s *server) fetch(ctx context.Context, f file, u *url.URL) (io.ReadCloser, error) {
	client := &http.Client{
		Transport: s.Images.Transport(), Timeout: fetchTimeout,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || r.URL.Scheme != "https" {
				return errors.New("it leads to too many other addresses, or to one without https")
			}
			return s.Images.CheckURL(r.URL)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, invalid(f.param, "The address can't be used: %v.", err)
	}
	answer, err := client.Do(req)
	var refused *netguard.Refusal
	switch {
	case errors.As(err, &refused):
		return nil, invalid(f.param, "The address can't be used: %v.", refused)
	case err != nil:
		return nil, invalid(f.param, "The file can't be fetched from %s.", u.Host)
	case answer.StatusCode != http.StatusOK:
		_ = answer.Body.Close()
		return nil, invalid(f.param, "The file can't be fetched: %s answered with status %d.", u.Host, answer.StatusCode)
	}
	return struct {
		io.Reader
		io.Closer
	}{&bounded{answer.Body, maxImage, f.param}, answer.Body}, nil
}

// bounded is a reader that fails after a number of bytes.
type bounded struct {
	from  io.Reader
	left  int64
	param string
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &fault{status: http.StatusRequestEntityTooLarge, param: b.param, code: "file_too_large",
			text: "The file at this address has more than 20 MB."}
	}
	return n, err
}
