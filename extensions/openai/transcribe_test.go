package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// recording is one with these bytes.
func recording(name, mime, data string) modelapi.Recording {
	return modelapi.Recording{Name: name, MIME: mime, Size: int64(len(data)),
		Write: func(_ context.Context, to io.Writer) error {
			_, err := io.WriteString(to, data)
			return err
		}}
}

const ogg = "OggS\x00 some words"

func TestTranscription(t *testing.T) {
	t.Parallel()
	server := openaitest.New(t)
	server.RequireKey(testKey)
	server.QueueHeard(openaitest.Hear(" buy milk\n", 12.5))
	said, err := connect(t, server.BaseURL()).Transcribe(t.Context(), "whisper-1", recording("0:12", "audio/ogg", ogg))
	if err != nil {
		t.Fatal(err)
	}
	if said.Text != "buy milk" || said.Usage.GetAudioMs() != 12_500 || said.Model != "whisper-1" {
		t.Errorf("got %+v", said)
	}
	got := server.Recordings()
	if len(got) != 1 || got[0].Model != "whisper-1" || got[0].Name != "audio.ogg" || string(got[0].Data) != ogg {
		t.Errorf("the server got %+v", got)
	}
	if n := got[0].Header.Get("Content-Length"); n == "" || n == "0" {
		t.Errorf("the length of the request is %q", n)
	}
}

// The name of a file tells servers its format, and nothing else.
func TestNameOfARecording(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, mime, want string }{
		{"secret.mp3", "audio/mpeg", "audio.mp3"}, {"a.b", "audio/x-m4a", "audio.m4a"}, {"x.FLAC", "", "audio.flac"},
		{"../../x", "application/ogg; codecs=opus", "audio.ogg"}, {"", "", "audio.ogg"}, {"x.mp3", "audio/amr", "audio.mp3"},
	} {
		server := openaitest.New(t)
		server.QueueHeard(openaitest.Hear("ok", 0))
		s := connect(t, server.BaseURL())
		if _, err := s.Transcribe(t.Context(), "whisper-1", recording(tt.name, tt.mime, ogg)); err != nil {
			t.Errorf("%+v: %v", tt, err)
		} else if got := server.Recordings()[0].Name; got != tt.want {
			t.Errorf("%+v: the file is called %q", tt, got)
		}
	}
}

func TestTranscriptionThatFails(t *testing.T) {
	t.Parallel()
	fail := func(status int, message string) *openaitest.Heard {
		return &openaitest.Heard{Answer: openaitest.Fail(status, message)}
	}
	cut := openaitest.Hear("a text that breaks off", 0)
	cut.Fault = openaitest.Cut
	rubbish := openaitest.Heard{Answer: openaitest.Answer{Body: "<html>", ContentType: "text/html"}}
	large := recording("", "audio/ogg", ogg)
	large.Size = modelapi.MaxRecording + 1
	for name, tt := range map[string]struct {
		heard *openaitest.Heard // nil: the server has no such route
		file  modelapi.Recording
		kind  modelapi.FailureKind
		want  string
	}{
		"no route":    {nil, recording("", "audio/ogg", ogg), modelapi.NoModel, "can't transcribe, or has no model whisper-1"},
		"refused":     {fail(400, "too quiet"), recording("", "audio/ogg", ogg), modelapi.BadRequest, "too quiet"},
		"no audio":    {&cut, recording("x.mp3", "", "MZ a program"), modelapi.BadRequest, "corrupted or unsupported"},
		"its format":  {&cut, recording("x.amr", "audio/amr", ogg), modelapi.BadRequest, "Unrecognized file format"},
		"too large":   {&cut, large, modelapi.BadRequest, "larger than 25 MB"},
		"for it":      {fail(http.StatusRequestEntityTooLarge, ""), recording("", "audio/ogg", ogg), modelapi.BadRequest, "too large for"},
		"it is down":  {fail(503, "busy"), recording("", "audio/ogg", ogg), modelapi.Unavailable, "still fails (503)"},
		"no money":    {fail(429, "insufficient_quota"), recording("", "audio/ogg", ogg), modelapi.RateLimited, "no quota left"},
		"it breaks":   {&cut, recording("", "audio/ogg", ogg), modelapi.Broken, "closed the connection"},
		"no JSON":     {&rubbish, recording("", "audio/ogg", ogg), modelapi.BadAnswer, "cannot be used"},
		"a lost file": {&cut, modelapi.Recording{Size: 5, Write: lost}, modelapi.BadRequest, "its file can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := openaitest.New(t)
			if tt.heard != nil {
				server.HandleRecordings(func(openaitest.Recording) openaitest.Heard { return *tt.heard })
			}
			_, err := connect(t, server.BaseURL()).Transcribe(t.Context(), "whisper-1", tt.file)
			f := (*modelapi.Failure)(nil)
			if !errors.As(err, &f) || f.Kind != tt.kind || !strings.Contains(f.Error(), tt.want) {
				t.Errorf("got %v, want %q of kind %d", err, tt.want, tt.kind)
			}
			if err != nil && (strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), server.URL)) {
				t.Errorf("the error shows too much: %v", err)
			}
		})
	}
}

func lost(context.Context, io.Writer) error { return errors.New("the disk is gone") }

// Another attempt sends the whole file again.
func TestTranscriptionIsRetried(t *testing.T) {
	t.Parallel()
	server := openaitest.New(t)
	failed := openaitest.Heard{Answer: openaitest.Fail(http.StatusServiceUnavailable, "busy")}
	failed.RetryAfter = "0"
	server.QueueHeard(failed, openaitest.Hear("buy milk", 0))
	once := 1
	s, err := modelapi.NewServer(Kind(), ID, modelapi.Config{BaseURL: server.BaseURL(), Key: KeyName, Retries: &once}, testKey)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	data := append([]byte("OggS"), bytes.Repeat([]byte("word "), 1<<20)...)
	var read atomic.Int64
	said, err := s.Transcribe(t.Context(), "whisper-1", modelapi.Recording{Size: int64(len(data)), MIME: "audio/ogg",
		Write: func(_ context.Context, to io.Writer) error {
			read.Add(1)
			_, err := io.Copy(to, bytes.NewReader(data))
			return err
		}})
	if err != nil || said.Text != "buy milk" {
		t.Fatalf("%+v, %v", said, err)
	}
	for i, r := range server.Recordings() {
		if !bytes.Equal(r.Data, data) {
			t.Errorf("attempt %d sent %d of %d bytes", i, len(r.Data), len(data))
		}
	}
	if n := read.Load(); n != 2 {
		t.Errorf("the file was read %d times", n)
	}
}

// A caller that ends its context is not kept waiting by the server, nor by the file.
func TestTranscriptionIsCancelled(t *testing.T) {
	t.Parallel()
	server := openaitest.New(t)
	held := openaitest.Hear("late", 0)
	held.Gate = make(chan struct{})
	server.HandleRecordings(func(openaitest.Recording) openaitest.Heard { return held })
	s := connect(t, server.BaseURL())
	for name, write := range map[string]func(context.Context, io.Writer) error{
		"the server": recording("", "", ogg).Write,
		"the file":   func(ctx context.Context, _ io.Writer) error { <-ctx.Done(); return ctx.Err() },
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := make(chan struct{})
		go func() {
			<-begun
			cancel(io.ErrNoProgress)
		}()
		_, err := s.Transcribe(ctx, "whisper-1", modelapi.Recording{Size: int64(len(ogg)),
			Write: func(ctx context.Context, to io.Writer) error {
				close(begun)
				return write(ctx, to)
			}})
		if !errors.Is(err, io.ErrNoProgress) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
