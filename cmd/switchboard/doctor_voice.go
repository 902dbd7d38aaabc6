package main

import (
	"bytes"
	"context"
	enc "encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/home"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/sdk/modelapi"
)

// askTranscribers has the models of models.transcribe write down a moment of silence.
func (d *diagnosis) askTranscribers(ctx context.Context, h *config.Home, seen *home.Inspection, running bool) {
	if d.offline || seen == nil || len(seen.Transcribe) == 0 {
		return
	}
	all := providersOf(seen)
	reports := make([]func(), len(seen.Transcribe))
	var asking sync.WaitGroup
	for n, full := range seen.Transcribe {
		asking.Go(func() { reports[n] = d.askTranscriber(ctx, h, all, full, running) })
	}
	asking.Wait()
	for _, report := range reports {
		report()
	}
}

// askTranscriber asks one model, and returns what adds the result.
func (d *diagnosis) askTranscriber(
	ctx context.Context, h *config.Home, all []provider, full string, running bool,
) (report func()) {
	id, model, _ := strings.Cut(full, "/")
	i := slices.IndexFunc(all, func(p provider) bool { return p.id == id })
	switch {
	case i < 0:
		return func() {
			d.add("Voice", levelError, "correct models.transcribe", "no extension %s provides models", id)
		}
	case len(all[i].missing) > 0 && running:
		return func() {
			d.add("Voice", levelNote, "put it in "+h.Secrets()+" to have it tested", "%s is not tested: only the kernel's "+
				"environment has %s", full, strings.Join(all[i].missing, " and "))
		}
	case len(all[i].missing) > 0:
		return func() { d.add("Voice", levelError, setSecret(h, all[i].missing[0]), "%s has no key", full) }
	case all[i].kind == nil:
		return func() { d.add("Voice", levelNote, "", "%s is not tested: %v", full, errNotAsked) }
	}
	begun := time.Now()
	err := all[i].transcribeSilence(ctx, strings.TrimSuffix(model, "*"))
	took := time.Since(begun).Seconds()
	return func() {
		if err != nil {
			d.add("Voice", levelError, "", "%s doesn't write down voice messages: %s", full, err)
			return
		}
		d.add("Voice", levelOK, "", "%s writes down voice messages (%s)", full, checked{Took: took}.seconds())
	}
}

// transcribeSilence has a model write down a moment of silence.
func (p *provider) transcribeSilence(ctx context.Context, model string) error {
	s, err := p.open()
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	file := silence()
	_, err = s.Transcribe(ctx, model, modelapi.Recording{
		MIME: "audio/wav", Size: int64(len(file)), Write: func(_ context.Context, to io.Writer) error {
			_, err := to.Write(file)
			return err
		},
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("no answer in time")
	}
	return err
}

// silence is half a second of it, as a WAV file.
func silence() []byte {
	const rate, sample = 16_000, 2
	data := make([]byte, rate*sample/2)
	var b bytes.Buffer
	for _, part := range []any{
		[]byte("RIFF"), uint32(36 + len(data)), []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), // PCM, mono
		uint32(rate), uint32(rate * sample), uint16(sample), uint16(8 * sample), []byte("data"), uint32(len(data)), data,
	} {
		_ = enc.Write(&b, enc.LittleEndian, part) // a buffer takes everything
	}
	return b.Bytes()
}
