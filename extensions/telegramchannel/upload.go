package telegramchannel

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/go-telegram/bot"

	"github.com/switchboard-run/switchboard/contract"
)

// uploaded is a file of a request.
type uploaded struct {
	field string
	file  contract.Attachment
}

// form is the body of a request with files. The files are read while they are sent.
type form struct {
	fields   map[string]string
	files    []uploaded
	boundary string
	read     func(hash string, to io.Writer) error
}

// blobError is the error of a file that could not be read, so the request was not made.
type blobError struct {
	file contract.Attachment
	err  error
}

func (e *blobError) Error() string { return e.err.Error() }
func (e *blobError) Unwrap() error { return e.err }

// write writes the form, with the files by each.
func (f *form) write(to io.Writer, each func(io.Writer, contract.Attachment) error) error {
	w := multipart.NewWriter(to)
	if err := w.SetBoundary(f.boundary); err != nil {
		return err
	}
	for name, value := range f.fields {
		if err := w.WriteField(name, value); err != nil {
			return err
		}
	}
	for _, u := range f.files {
		part, err := w.CreateFormFile(u.field, fileName(u.file))
		if err != nil {
			return err
		}
		if err := each(part, u.file); err != nil {
			return err
		}
	}
	return w.Close()
}

// size returns the length of the form.
func (f *form) size() (n int64, err error) {
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
func (f *form) body() (io.ReadCloser, error) {
	from, to := io.Pipe()
	go func() {
		to.CloseWithError(f.write(to, func(w io.Writer, a contract.Attachment) error {
			if err := f.read(a.Blob, w); err != nil {
				return &blobError{a, err}
			}
			return nil
		}))
	}()
	return from, nil
}

// upload makes a call with files and decodes its result.
func (a *activation) upload(
	ctx context.Context, method string, fields map[string]string, files []uploaded, into any,
) error {
	f := &form{
		fields: fields, files: files, boundary: multipart.NewWriter(io.Discard).Boundary(),
		read: func(hash string, to io.Writer) error {
			_, err := a.kernel.GetBlob(ctx, hash, to)
			return err
		},
	}
	size, err := f.size()
	if err != nil {
		return &callError{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, uploadTimeout)
	defer cancel()
	body, err := f.body()
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.api.url+"/bot"+a.api.token+"/"+method, body)
	if err != nil {
		return &callError{err: err}
	}
	req.ContentLength, req.GetBody = size, f.body
	req.Header.Set("Content-Type", "multipart/form-data; boundary="+f.boundary)
	resp, err := a.api.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	result, err := decodeAnswer(method, resp)
	if err == nil {
		err = json.Unmarshal(result, into)
	}
	return err
}

// decodeAnswer returns the result of a call, or an error as those of the library.
func decodeAnswer(method string, resp *http.Response) (json.RawMessage, error) {
	var answer struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Description string          `json:"description"`
		Code        int             `json:"error_code"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
			MigrateTo  int `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, &callError{sent: true, err: fmt.Errorf("decode response of %s: %w", method, err)}
	}
	if answer.OK {
		return answer.Result, nil
	}
	if answer.Parameters.MigrateTo != 0 {
		return nil, &bot.MigrateError{Message: answer.Description, MigrateToChatID: answer.Parameters.MigrateTo}
	}
	for code, kind := range map[int]error{
		http.StatusUnauthorized: bot.ErrorUnauthorized, http.StatusNotFound: bot.ErrorNotFound,
		http.StatusConflict: bot.ErrorConflict, http.StatusForbidden: bot.ErrorForbidden,
	} {
		if answer.Code == code {
			return nil, fmt.Errorf("%w, %s", kind, answer.Description)
		}
	}
	if answer.Code == http.StatusTooManyRequests {
		return nil, &bot.TooManyRequestsError{Message: answer.Description, RetryAfter: answer.Parameters.RetryAfter}
	}
	return nil, fmt.Errorf("%w, %s", bot.ErrorBadRequest, answer.Description)
}
