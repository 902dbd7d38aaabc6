package openaitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Recording is a request to write down a recording.
type Recording struct {
	Header      http.Header
	Model, Name string // Name is that of the file
	Data        []byte
}

// Heard is the answer to a Recording: its Text, or its Status, Message, RetryAfter, Delay,
// Gate, Body and the fault Cut of an Answer.
type Heard struct {
	Answer
	// Seconds is reported as the duration; 0: none is.
	Seconds float64
}

// Hear returns an answer with a transcript.
func Hear(text string, seconds float64) Heard { return Heard{Answer: Say(text), Seconds: seconds} }

// listener holds what a server hears.
type listener struct {
	recordings []Recording
	queue      []Heard
	handler    func(Recording) Heard
}

// QueueHeard appends answers to recordings.
func (s *Server) QueueHeard(answers ...Heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener.queue = append(s.listener.queue, answers...)
}

// HandleRecordings sets the handler of recordings without a queued answer. f runs
// concurrently. Without it, and without a queued answer, the server does not transcribe.
func (s *Server) HandleRecordings(f func(Recording) Heard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listener.handler = f
}

// Recordings returns the recordings that the server got, including refused ones.
func (s *Server) Recordings() []Recording {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listener.recordings)
}

// maxRecording is the size of the largest file that the API takes.
const maxRecording = 25 << 20

// formats are the formats that the API takes, by the beginnings of their files. The
// extension of a file must be one of them.
var (
	formats = []string{"flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm"}
	magic   = []string{"OggS", "ID3", "\xff\xfb", "\xff\xf3", "RIFF", "fLaC", "\x1aE\xdf\xa3"}
)

// hear answers a request to write down a recording.
func (s *Server) hear(w http.ResponseWriter, r *http.Request) {
	rec, refusal := s.recording(r)
	s.mu.Lock()
	s.listener.recordings = append(s.listener.recordings, rec)
	heard := Heard{Answer: Fail(http.StatusNotFound, fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path))}
	handler := s.listener.handler
	if len(s.listener.queue) > 0 && refusal == nil {
		heard, handler = s.listener.queue[0], nil
		s.listener.queue = s.listener.queue[1:]
	}
	s.mu.Unlock()
	if refusal != nil {
		refusal.write(w)
		return
	}
	if handler != nil {
		heard = handler(rec)
	}
	if a := heard.Answer; a.Status != 0 || a.Body != "" {
		(&reply{server: s, w: w, r: r, answer: a, ending: func() {}}).run()
		return
	}
	p := &reply{server: s, w: w, r: r, answer: heard.Answer}
	if !p.wait(heard.Gate, heard.Delay) {
		return
	}
	out := map[string]any{"text": heard.Text}
	if heard.Seconds > 0 {
		out["usage"] = map[string]any{"type": "duration", "seconds": heard.Seconds}
	}
	text, _ := json.Marshal(out) //nolint:errchkjson // strings and numbers
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if heard.Fault == Cut {
		text = text[:len(text)/2]
	}
	_, _ = w.Write(text)
}

// recording parses a request, and returns the error of the real API if it would refuse it.
func (s *Server) recording(r *http.Request) (rec Recording, refusal *apiError) {
	rec.Header = r.Header
	r.Body = http.MaxBytesReader(nil, r.Body, maxRecording+1<<20)
	form, err := r.MultipartReader()
	if err != nil {
		return rec, bad("", "We could not parse your multipart form: %v", err)
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return rec, bad("", "We could not parse your multipart form: %v", err)
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return rec, bad("", "We could not parse your multipart form: %v", err)
		}
		switch part.FormName() {
		case "model":
			rec.Model = string(data)
		case "file":
			rec.Name, rec.Data = part.FileName(), data
		case "response_format":
			if string(data) != "json" {
				return rec, bad("response_format", "response_format %q is not supported", data)
			}
		default:
			return rec, bad(part.FormName(), "Unrecognized request argument supplied: %s", part.FormName())
		}
	}
	extension := strings.TrimPrefix(path.Ext(rec.Name), ".")
	switch {
	case rec.Model == "":
		return rec, bad("model", "you must provide a model parameter")
	case !s.knows(rec.Model):
		return rec, &apiError{status: http.StatusNotFound, Type: invalidRequest, Code: "model_not_found",
			Message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", rec.Model)}
	case len(rec.Data) > maxRecording:
		return rec, &apiError{status: http.StatusRequestEntityTooLarge, Type: "server_error",
			Message: "Maximum content size limit (26214400) exceeded"}
	case !slices.Contains(formats, extension):
		return rec, bad("file", "Unrecognized file format. Supported formats: %q", formats)
	case !soundsLike(rec.Data):
		return rec, bad("file", "Audio file might be corrupted or unsupported")
	}
	return rec, nil
}

func soundsLike(data []byte) bool {
	return len(data) > 8 && string(data[4:8]) == "ftyp" ||
		slices.ContainsFunc(magic, func(m string) bool { return bytes.HasPrefix(data, []byte(m)) })
}
