package httpcall

import (
	"context"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// Form is the body of a request with files. The files are read while they are sent.
type Form struct {
	Fields map[string]string
	Files  []FormFile
	From   Blobs // has the files

	boundary string
}

// FormFile is a file of a form.
type FormFile struct {
	Field string
	Name  string
	File  contract.Attachment
}

// Blobs has the files; *sdk.Kernel is one.
type Blobs interface {
	GetBlob(ctx context.Context, name string, to io.Writer) (sdk.Blob, error)
}

// BlobError is the error of a file that could not be read, so the request was not made.
type BlobError struct{ Err error }

func (e *BlobError) Error() string { return e.Err.Error() }

func (e *BlobError) Unwrap() error { return e.Err }

// Attach makes the form the body of a request.
func (f *Form) Attach(req *http.Request) (err error) {
	w := multipart.NewWriter(io.Discard)
	f.boundary = w.Boundary()
	if req.ContentLength, err = f.size(); err != nil {
		return err
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.GetBody = func() (io.ReadCloser, error) { return f.body(req.Context()), nil }
	req.Body, err = req.GetBody()
	return err
}

// write writes the form, with the files by each.
func (f *Form) write(to io.Writer, each func(io.Writer, contract.Attachment) error) error {
	w := multipart.NewWriter(to)
	if err := w.SetBoundary(f.boundary); err != nil {
		return err
	}
	for name, value := range f.Fields {
		if err := w.WriteField(name, value); err != nil {
			return err
		}
	}
	for _, file := range f.Files {
		part, err := w.CreateFormFile(file.Field, file.Name)
		if err != nil {
			return err
		}
		if err := each(part, file.File); err != nil {
			return err
		}
	}
	return w.Close()
}

// size returns the length of the form.
func (f *Form) size() (n int64, err error) {
	head := &counter{}
	err = f.write(head, func(_ io.Writer, a contract.Attachment) error {
		n += a.Size
		return nil
	})
	return n + head.n, err
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// body returns a reader of the form.
func (f *Form) body(ctx context.Context) io.ReadCloser {
	from, to := io.Pipe()
	go func() {
		to.CloseWithError(f.write(to, func(w io.Writer, a contract.Attachment) error {
			if _, err := f.From.GetBlob(ctx, a.Blob, w); err != nil {
				return &BlobError{err}
			}
			return nil
		}))
	}()
	return from
}
