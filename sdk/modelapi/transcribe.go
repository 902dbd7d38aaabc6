package modelapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/switchboard-run/switchboard/sdk"
)

// MaxRecording is the size of the largest recording that servers take, in bytes.
const MaxRecording = 25 << 20

// maxTranscript bounds the answer to a transcription, in bytes.
const maxTranscript = 4 << 20

// Recording is a file with speech.
type Recording struct {
	Name, MIME string
	Size       int64
	// Write writes the file. It may be called again, for another attempt.
	Write func(ctx context.Context, to io.Writer) error
}

// Transcript is what is said in a recording.
type Transcript struct {
	Text  string // may be empty
	Model string // that wrote it
	Usage *sdk.Usage
}

// extensions are the extensions by which servers recognize a format, by MIME types.
var extensions = map[string]string{
	"audio/ogg": "ogg", "application/ogg": "ogg", "audio/opus": "ogg", "video/ogg": "ogg", "audio/mpeg": "mp3",
	"audio/mp3": "mp3", "audio/mp4": "m4a", "audio/x-m4a": "m4a", "audio/m4a": "m4a", "video/mp4": "mp4",
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/flac": "flac", "audio/x-flac": "flac",
	"audio/webm": "webm", "video/webm": "webm",
}

// fileName returns a name from which servers recognize the format. It says nothing else
// about the file.
func (r Recording) fileName() string {
	mime, _, _ := strings.Cut(strings.ToLower(r.MIME), ";")
	if known := extensions[strings.TrimSpace(mime)]; known != "" {
		return "audio." + known
	}
	if known := strings.ToLower(path.Ext(r.Name)); len(known) > 1 && len(known) < 6 {
		return "audio" + known
	}
	return "audio.ogg"
}

// errUnread wraps the error of Recording.Write.
var errUnread = errors.New("read the recording")

// Transcribe returns what is said in a recording. It returns a *Failure, or the error of a
// ctx that the caller ended. Nothing of the recording is kept in memory.
func (s *Server) Transcribe(ctx context.Context, model string, r Recording) (Transcript, error) {
	switch {
	case s.keyMissing():
		return Transcript{}, failf(Unconfigured, "%s", s.noKey())
	case s.kind.Transcriptions == "":
		return Transcript{}, failf(BadRequest, "%v can't transcribe: choose another model for models.transcribe", s.who)
	case r.Size > MaxRecording:
		return Transcript{}, failf(BadRequest, "it is larger than %d MB", MaxRecording>>20)
	}
	total, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer time.AfterFunc(time.Duration(s.config.Timeout), func() { end(errTooLong) }).Stop()
	answer, err := s.upload(total, end, model, r)
	switch refused := (*StatusError)(nil); {
	case err == nil:
		return Transcript{Text: strings.TrimSpace(Text(answer.Text)), Model: model, Usage: answer.usage()}, nil
	case ctx.Err() != nil:
		return Transcript{}, context.Cause(ctx)
	case errors.Is(context.Cause(total), errUnread):
		return Transcript{}, failf(BadRequest, "its file can't be read")
	case errors.As(err, &refused) &&
		(refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed):
		return Transcript{}, failf(NoModel, "%v can't transcribe, or has no model %s: check models.transcribe", s.who, model)
	case errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge:
		return Transcript{}, failf(BadRequest, "it is too large for %v", s.who)
	}
	return Transcript{}, s.explain(total, model, err)
}

// upload sends a recording and returns the answer. An error of Recording.Write ends total.
func (s *Server) upload(
	total context.Context, end context.CancelCauseFunc, model string, r Recording,
) (answer transcription, err error) {
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	if err := errors.Join(form.WriteField("model", model), form.WriteField("response_format", "json")); err != nil {
		return answer, err
	}
	if _, err := form.CreateFormFile("file", r.fileName()); err != nil {
		return answer, err
	}
	begin := head.Len()
	if err := form.Close(); err != nil {
		return answer, err
	}
	body := retryablehttp.ReaderFunc(func() (io.Reader, error) {
		return &upload{ctx: total, end: end, recording: r, head: head.Bytes()[:begin], tail: head.Bytes()[begin:]}, nil
	})
	q, err := http.NewRequestWithContext(total, http.MethodPost, s.config.BaseURL+s.kind.Transcriptions, nil)
	if err != nil {
		return answer, err
	}
	q.Header.Set("Content-Type", form.FormDataContentType())
	q.Header.Set("Accept", "application/json")
	s.kind.Headers(q.Header, s.key)
	resp, err := s.slow.do(q, body)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return answer, statusError(resp)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxTranscript))
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

// transcription is the answer of a server. Some tell the duration in their usage.
type transcription struct {
	Text     string      `json:"text"`
	Duration json.Number `json:"duration"` // seconds
	Usage    struct {
		Seconds      float64 `json:"seconds"`
		InputTokens  int64   `json:"input_tokens"`
		OutputTokens int64   `json:"output_tokens"`
	} `json:"usage"`
}

func (t *transcription) usage() *sdk.Usage {
	seconds, err := t.Duration.Float64()
	if err != nil {
		seconds = t.Usage.Seconds
	}
	return &sdk.Usage{
		InputTokens: t.Usage.InputTokens, OutputTokens: t.Usage.OutputTokens, AudioMs: int64(1000 * seconds),
	}
}

// upload is the body of one attempt: the file between the parts of its form. It begins to
// read the file when it is read itself. The HTTP client may close it meanwhile.
type upload struct {
	ctx        context.Context // of the attempts
	end        context.CancelCauseFunc
	recording  Recording
	head, tail []byte

	mu     sync.Mutex
	closed bool
	body   io.Reader // nil: nothing was read yet
	stop   func()
}

// Len implements retryablehttp.LenReader.
func (u *upload) Len() int { return len(u.head) + int(u.recording.Size) + len(u.tail) }

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.mu.Lock()
	if u.body == nil && !u.closed {
		u.begin()
	}
	body := u.body
	u.mu.Unlock()
	if body == nil {
		return 0, io.ErrClosedPipe
	}
	return body.Read(p)
}

// begin begins to read the file. The caller holds u.mu.
func (u *upload) begin() {
	from, to := io.Pipe()
	ctx, cancel := context.WithCancel(u.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := u.recording.Write(ctx, to)
		if err != nil && ctx.Err() == nil && !errors.Is(err, io.ErrClosedPipe) {
			u.end(fmt.Errorf("%w: %w", errUnread, err))
		}
		_ = to.CloseWithError(err)
	}()
	u.body = io.MultiReader(bytes.NewReader(u.head), from, bytes.NewReader(u.tail))
	u.stop = func() {
		cancel()
		_ = from.Close()
		<-done
	}
}

// Close implements io.Closer.
func (u *upload) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed = true; u.stop != nil {
		u.stop()
	}
	return nil
}
