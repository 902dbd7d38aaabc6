package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/contract/extensionv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/sdk"
)

// What people say in voice messages, and audio that they send, is written down by a model
// before their turn, and recorded with the input: later requests and a resumed turn have
// the text. A voice message is the person's own text; audio is data. A message that
// interrupts a turn is written down while that turn goes on.

const (
	// transcriptTimeout bounds one transcription; a turn with less time has half of it.
	transcriptTimeout = 5 * time.Minute
	// maxTranscript bounds the text of one recording, in bytes.
	maxTranscript = 64 << 10
	// keepTranscript is how long a text is kept for a message that still waits.
	keepTranscript = 10 * time.Minute
	// transcriptSender is the sender of the note with the text of audio, unheardSender that
	// of the note about a recording without one. The last line of that is for the person.
	transcriptSender = "transcript"
	unheardSender    = "transcription"
)

// transcript is the text of a recording, or why there is none.
type transcript struct {
	done chan struct{} // closed when the rest is set
	text string
	err  error
}

// transcripts are the recordings that are being written down, and those whose text is not
// recorded yet, by session and file.
type transcripts struct {
	mu  sync.Mutex
	all map[string]*transcript
}

// get returns the transcript of a key, and begins it with write if there is none.
func (c *transcripts) get(key string, write func() (string, error)) *transcript {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.all[key]; s != nil {
		return s
	}
	s := &transcript{done: make(chan struct{})}
	if c.all == nil {
		c.all = map[string]*transcript{}
	}
	c.all[key] = s
	go func() {
		s.text, s.err = write()
		close(s.done)
		time.AfterFunc(keepTranscript, func() { c.drop(key, s) })
	}()
	return s
}

func (c *transcripts) drop(key string, s *transcript) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[key] == s {
		delete(c.all, key)
	}
}

// isRecording reports whether an attachment is written down.
func isRecording(a *busv1.Attachment) bool {
	return a.GetBlob() != "" && (a.GetKind() == contract.KindVoice || a.GetKind() == contract.KindAudio)
}

// recordings returns the recordings of a person's input, each once.
func recordings(e *busv1.Entry) (all []*busv1.Attachment) {
	if e.GetKind() != contract.EntryInput || e.GetInputKind() != contract.InputUser {
		return nil
	}
	for _, a := range e.GetAttachments() {
		if isRecording(a) && !slices.ContainsFunc(all, func(b *busv1.Attachment) bool { return a.GetBlob() == b.GetBlob() }) {
			all = append(all, a)
		}
	}
	return all
}

// hearing is a recording of an input that is written down.
type hearing struct {
	input *busv1.Entry
	file  *busv1.Attachment
	key   string // of the transcript
	*transcript
}

// transcribe begins to write down the recordings of an input. That goes on when the attempt
// ends: another one finds the text.
func (t *turn) transcribe(e *busv1.Entry) (all []hearing) {
	limit := min(transcriptTimeout, t.a.limits.time/2)
	ctx := context.WithoutCancel(t.ctx)
	for _, a := range recordings(e) {
		key := t.context.GetSession() + " " + a.GetBlob()
		all = append(all, hearing{e, a, key, t.a.transcripts.get(key, func() (string, error) {
			ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
			defer cancel()
			return t.a.writeDown(ctx, a)
		})})
	}
	return all
}

var (
	errSlow         = words.Errorf("it took too long")
	errNoTranscribe = words.Errorf("no model for voice messages is set up (models.transcribe)")
	errNoWords      = words.Errorf("there are no words in it")
)

// writeDown asks the model for the text of a recording, and retries while its process
// restarts.
func (a *Agent) writeDown(ctx context.Context, file *busv1.Attachment) (string, error) {
	request := &kernelv1.CompleteRequest{
		Model: contract.ModelTranscribe, Purpose: contract.PurposeTranscribe, Recording: &extensionv1.Recording{
			Blob: file.GetBlob(), Name: file.GetName(), Mime: file.GetMime(), Size: file.GetSize(),
		},
	}
	for attempt := 0; ; attempt++ {
		var text strings.Builder
		err := a.kernel.Complete(ctx, request, func(d *sdk.Delta) error {
			text.WriteString(d.GetText())
			return nil
		})
		switch {
		case err == nil && contract.Blank(text.String()):
			return "", errNoWords
		case err == nil:
			return cutText(strings.TrimSpace(text.String()), maxTranscript), nil
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case errors.Is(err, contract.ErrDenied):
			return "", errNoTranscribe
		case !errors.Is(err, contract.ErrGone) || attempt == len(reconnectDelays):
			return "", err
		}
		select {
		case <-time.After(reconnectDelays[attempt]):
		case <-ctx.Done():
		}
	}
}

// hear waits for the texts of the recordings of the turn's new inputs, and adds them.
func (t *turn) hear() error {
	var all []hearing
	for _, e := range t.fresh {
		all = append(all, t.transcribe(e)...)
	}
	for _, h := range all {
		if err := t.await(h.transcript); err != nil {
			return err
		}
	}
	notes, err := t.addTranscripts(all)
	t.fresh = append(t.fresh, notes...)
	if len(t.written) == 1 && t.written[0].file.GetKind() == contract.KindVoice {
		t.draft.show(words.Say(t.language, "I heard: %s", t.written[0].text))
	}
	t.spoken = len(all) > 0
	if n := len(t.history.rows); len(all) == 0 && n > 0 && t.history.rows[n-1].turn == t.id {
		t.each(func(e *busv1.Entry) { t.spoken = t.spoken || len(recordings(e)) > 0 })
	}
	return err
}

func (t *turn) await(s *transcript) error {
	select {
	case <-s.done:
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

// unwritten returns the first of the recordings that is not written down yet, or nil.
func unwritten(all []hearing) *transcript {
	for _, h := range all {
		select {
		case <-h.done:
		default:
			return h.transcript
		}
	}
	return nil
}

// addTranscripts adds the texts of recordings, which are written down, to their inputs, and
// returns the notes that follow these. An error ends the attempt.
func (t *turn) addTranscripts(all []hearing) (notes []*busv1.Entry, err error) {
	for _, h := range all {
		switch {
		case h.err != nil:
			t.a.transcripts.drop(h.key, h.transcript) // the next message with it tries again
			if errors.Is(h.err, contract.ErrStale) {
				return nil, h.err
			}
			t.a.log.Warn("write down a recording", "session", t.context.GetSession(), "file", reference(h.file), "error", h.err)
			notes = append(notes, unheard(h.file, h.err))
			continue
		case h.file.GetKind() == contract.KindVoice:
			said := strings.Join(strings.Fields(h.text), " ")
			h.input.Text = withTranscript(h.input.GetText(), reference(h.file), said)
		default:
			notes = append(notes, &busv1.Entry{Kind: contract.EntryNote, Sender: transcriptSender,
				Text: "What is said in " + reference(h.file) + ":\n" + h.text})
		}
		t.written = append(t.written, h)
	}
	return notes, nil
}

// withTranscript adds the text of a voice message to its reference in an input.
func withTranscript(text, reference, said string) string {
	before, after, found := strings.Cut(text, reference)
	if !found {
		return strings.TrimSpace(text+"\n"+reference) + contract.SpokenMark + said
	}
	return before + reference + contract.SpokenMark + said + after
}

// unheard returns the note about a recording without a text.
func unheard(a *busv1.Attachment, err error) *busv1.Entry {
	reason := strings.Join(strings.Fields(err.Error()), " ")
	reason = cutRunes(strings.TrimPrefix(reason, contract.ErrUnavailable.Error()+": "), maxDetail)
	sentence := words.Sprintf("I couldn't understand %v: %v.", nameFor(a), strings.TrimSuffix(reason, "."))
	return &busv1.Entry{Kind: contract.EntryNote, Sender: unheardSender,
		Text: "There is no transcript of " + reference(a) + ". The user gets this sentence with your answer:\n" + sentence}
}

// nameFor names a recording for its sender.
func nameFor(a *busv1.Attachment) string {
	if a.GetKind() == contract.KindVoice || a.GetName() == "" {
		return words.Sprintf("your voice message")
	}
	return a.GetName()
}

// recordInputs records the inputs whose recordings were written down: no other attempt
// pays for that again.
func (t *turn) recordInputs() error {
	if len(t.written) == 0 {
		return nil
	}
	result, err := t.append(t.fresh)
	if err != nil {
		return fmt.Errorf("record what was said: %w", err)
	}
	t.history.predict(t.fresh, t.id)
	t.fresh = nil
	if result.GetWaiting() > 0 {
		t.waiting.Store(true)
	}
	t.forgetTranscripts()
	return nil
}

// forgetTranscripts drops the texts that are recorded.
func (t *turn) forgetTranscripts() {
	for _, h := range t.written {
		t.a.transcripts.drop(h.key, h.transcript)
	}
	t.written = nil
}

// missed returns the sentences for the person about the recordings of this turn that have
// no text.
func (t *turn) missed() string {
	if !t.spoken {
		return ""
	}
	var all []string
	t.each(func(e *busv1.Entry) {
		if _, sentence, ok := strings.Cut(e.GetText(), "\n"); ok && e.GetKind() == contract.EntryNote &&
			e.GetSender() == unheardSender {
			all = append(all, words.Translate(t.language, sentence))
		}
	})
	return strings.Join(all, "\n")
}

// onlyMissed reports whether the turn has nothing to answer but recordings without a text.
func (t *turn) onlyMissed() bool {
	only := t.missed() != ""
	t.each(func(e *busv1.Entry) {
		if e.GetKind() != contract.EntryInput {
			return
		}
		rest := e.GetText()
		for _, a := range recordings(e) {
			rest = strings.ReplaceAll(rest, reference(a), "")
		}
		only = only && contract.Blank(rest)
	})
	return only
}

// understood returns what the person said in this turn, if a tool did something for it.
func (t *turn) understood() string {
	if !t.spoken {
		return ""
	}
	acted := false
	var said []string
	t.each(func(e *busv1.Entry) {
		for _, c := range e.GetCalls() {
			acted = acted || !t.tools.readOnly(c.GetName())
		}
		for _, a := range recordings(e) {
			if _, after, found := strings.Cut(e.GetText(), reference(a)+contract.SpokenMark); found {
				line, _, _ := strings.Cut(after, "\n")
				said = append(said, cutRunes(line, maxUnderstood))
			}
		}
	})
	if !acted {
		return ""
	}
	return strings.Join(said, " ")
}

// maxUnderstood bounds what is quoted of a voice message, in characters.
const maxUnderstood = 300

// each calls f with the rows of the turn.
func (t *turn) each(f func(*busv1.Entry)) {
	for _, r := range t.own() {
		f(r.Entry)
	}
	for _, e := range t.fresh {
		f(e)
	}
}
