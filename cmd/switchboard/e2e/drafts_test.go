package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
)

// draftMark ends what Telegram shows of an answer that is still being written.
const draftMark = " ▍"

const (
	tale = "Once upon a time there was a switchboard with many, many lines. Every line led to somebody who wanted " +
		"something. And so on, until the end of the day, when all of them had got it."
	taleEnds = "until the end of the day, when all of them had got it."
)

// writing is a world where the model writes the tale, as far as the test lets it.
func writing(t *testing.T, opts ...option) (w *world, goOn func()) {
	t.Helper()
	w = newWorld(t, append([]option{withTelegram(telegramtest.WithLimits(telegramtest.TelegramLimits())), withModel},
		opts...)...)
	steps := make(chan struct{}, 4)
	w.model.Queue(openaitest.Answer{Text: tale, Pieces: 4, Steps: steps})
	w.start()
	w.telegramReady()
	left := 4
	return w, func() {
		if left--; left == 0 {
			close(steps)
		} else {
			steps <- struct{}{}
		}
	}
}

// drafted waits until the nth message to Anna is a draft that was edited, which
// is when the channel is sure to know it after whatever happens.
func (w *world) drafted(n int, goOn func()) telegramtest.Message {
	w.t.Helper()
	goOn()
	goOn()
	first := w.told(anna, n)
	if !strings.HasSuffix(first.Text, draftMark) || !strings.HasPrefix(tale, strings.TrimSuffix(first.Text, draftMark)) {
		w.t.Fatalf("the draft is %q", first.Text)
	}
	goOn()
	m, err := w.telegram.WaitEdit(w.ctx(), anna, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return m
}

// unlimited fails the test if Telegram had to slow the bot down.
func (w *world) unlimited() {
	w.t.Helper()
	for _, r := range w.telegram.Refused() {
		if r.Status == http.StatusTooManyRequests {
			w.t.Errorf("Telegram refused %s in chat %d: %s", r.Method, r.Chat, r.Description)
		}
	}
}

// remains checks what Anna has in the end: one message, the draft.
func (w *world) remains(draft telegramtest.Message, text string) {
	w.t.Helper()
	w.eventually("the answer in the place of its draft", func() bool { return w.texts(anna)[0] == text })
	w.settled()
	if all := w.telegram.Messages(anna); len(all) != 1 || all[0].ID != draft.ID {
		w.t.Errorf("Anna has %+v, the draft was %d", all, draft.ID)
	}
	w.unlimited()
	if dead := w.dead(); len(dead) != 0 {
		w.t.Errorf("dead letters: %q", dead)
	}
}

func TestAnswerIsShownAsItIsWritten(t *testing.T) {
	t.Parallel()
	w, goOn := writing(t)
	w.telegram.Say(anna, "Tell me a story.")
	if err := w.telegram.WaitActions(w.ctx(), anna, 1); err != nil {
		t.Fatal(err)
	}
	draft := w.drafted(1, goOn)
	goOn()
	w.remains(draft, tale)
}

func TestAnswerTakesThePlaceOfItsDraftWhateverIsKilled(t *testing.T) {
	t.Parallel()
	for name, kills := range map[string]func(*world){
		"channel": func(w *world) { kill(w.extensionProcess("telegram_channel"), syscall.SIGKILL) },
		"all":     func(w *world) { kill(w.extensionProcess("telegram_channel"), syscall.SIGKILL) },
		"agent":   func(w *world) { kill(w.extensionProcess("agent:orchestrator"), syscall.SIGKILL) },
		"kernel":  func(w *world) { w.restart() },
		"stopped": func(w *world) { w.stop(); w.start() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var apart []option
			if name == "channel" {
				apart = append(apart, grouped)
			}
			w, goOn := writing(t, apart...)
			w.telegram.Say(anna, "Tell me a story.")
			draft := w.drafted(1, goOn)
			again := "Once upon another time, which ended more quickly."
			w.model.Queue(openaitest.Say(again)) // the turn has to start again
			kills(w)
			goOn()
			want := again
			if name == "channel" {
				want = tale
			}
			w.remains(draft, want)
		})
	}
}

func TestAnswerThatIsKilledOnItsWayIsAnEditWithoutAMark(t *testing.T) {
	t.Parallel()
	w, goOn := writing(t)
	w.telegram.Say(anna, "Tell me a story.")
	draft := w.drafted(1, goOn)
	w.telegram.Fail("editMessageText", 1, telegramtest.Fault{Hang: true})
	goOn()
	if _, err := w.telegram.WaitRefused(w.ctx(), 1); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.remains(draft, tale)
}

func TestNewTakesBackWhatWasBeingWritten(t *testing.T) {
	t.Parallel()
	w, goOn := writing(t)
	p := w.attach()
	w.telegram.Say(anna, "Tell me a story.")
	draft := w.drafted(1, goOn)
	w.telegram.Say(anna, "/new")
	w.eventually("the draft to be removed", func() bool { return len(w.telegram.Deleted(anna)) == 1 })
	w.eventually("the answer to /new", func() bool { return len(w.texts(anna)) == 1 })
	goOn()
	w.settled()
	if gone, left := w.telegram.Deleted(anna), w.texts(anna); gone[0].ID != draft.ID || len(left) != 1 ||
		!strings.Contains(left[0], "New conversation") {
		t.Errorf("deleted is %+v, left are %q", gone, left)
	}
	w.unlimited()
	if got := p.texts(); len(got) != 0 {
		t.Errorf("the terminal shows %q", got)
	}
}

// A newer message interrupts the turn: there are two drafts, and each becomes
// the answer to its own message.
func TestInterruptedTurnKeepsItsDraft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withTelegram(telegramtest.WithLimits(telegramtest.TelegramLimits())), withModel)
	steps := make(chan struct{})
	w.model.Queue(
		openaitest.Answer{Text: tale, Pieces: 2, Steps: steps,
			Calls: []openaitest.Call{openaitest.NewCall("scheduler__list_schedules", "{}")}},
		openaitest.Say("Yes, I am listening."), openaitest.Say("This is the story."),
	)
	w.start()
	w.telegramReady()
	w.telegram.Say(anna, "Tell me a story.")
	steps <- struct{}{}
	draft := w.told(anna, 1)
	w.telegram.Say(anna, "Are you listening?")
	w.eventually("both messages", func() bool { return w.count("agent.input.orchestrator") == 2 })
	close(steps)
	w.eventually("both answers", func() bool {
		all := w.texts(anna)
		return len(all) == 2 && all[0] == "This is the story." && all[1] == "Yes, I am listening."
	})
	w.settled()
	if all := w.telegram.Messages(anna); len(all) != 2 || all[0].ID != draft.ID {
		t.Errorf("Anna has %+v", all)
	}
	w.unlimited()
}

// Many chats and two groups are written to at once: everybody sees drafts and
// gets an answer, and Telegram never has to refuse anything.
func TestDraftsOfManyChatsKeepTelegramsLimits(t *testing.T) {
	t.Parallel()
	const chats = 50
	w := newWorld(t, strangers(telegramtest.WithLimits(telegramtest.TelegramLimits())), withModel)
	w.config(`channels: {telegram_channel: {allow_from: ["*"]}}
extensions: {telegram_channel: {config: {pace: true}}}`)
	const pieces = 40
	told := make(chan struct{}) // everybody has a draft
	w.model.Handle(func(r openaitest.Request) openaitest.Answer {
		steps := make(chan struct{})
		go func() {
			defer close(steps)
			pace := time.NewTicker(100 * time.Millisecond)
			defer pace.Stop()
			for range pieces - 1 {
				select {
				case steps <- struct{}{}:
				case <-t.Context().Done():
					return
				}
				<-pace.C
			}
			select {
			case <-told:
			case <-t.Context().Done():
			}
		}()
		return openaitest.Answer{Text: tale, Pieces: pieces, Steps: steps}
	})
	w.start()
	w.telegramReady()
	ids := []int64{group, group - 1}
	for i := range 3 {
		for _, id := range ids[:2] {
			w.telegram.Inject(telegramtest.Incoming{
				Chat: telegramtest.Chat{ID: id, Type: telegramtest.Group},
				From: telegramtest.User{ID: int64(6000 + i), FirstName: "Member"},
				Text: fmt.Sprintf("@switchboard_test_bot tell us story %d", i),
			})
		}
	}
	for c := range int64(chats) {
		ids = append(ids, 5000+c)
		w.telegram.Say(5000+c, "Tell me a story.")
	}
	w.eventually("all messages", func() bool { return w.count("user.message") == chats+6 })
	w.eventually("a draft for everybody", func() bool {
		return !slices.ContainsFunc(ids[2:], func(id int64) bool { return len(w.texts(id)) == 0 })
	})
	close(told)
	w.settled()
	edits := 0
	for _, id := range ids {
		all := w.telegram.Messages(id)
		if len(all) == 0 {
			t.Errorf("chat %d has no answer", id)
		}
		for _, m := range all {
			edits += m.Edits
			if !strings.HasSuffix(m.Text, taleEnds) || id > 0 && len(all) != 1 {
				t.Errorf("chat %d has %q", id, w.texts(id))
			}
		}
	}
	if edits < chats {
		t.Errorf("drafts were edited %d times only", edits)
	}
	w.unlimited()
}

func TestTerminalsShowWhatIsBeingWritten(t *testing.T) {
	t.Parallel()
	w, goOn := writing(t)
	p := w.attach()
	p.say("Tell me a story.")
	goOn()
	shows := func(p *person, n int) func() bool {
		return func() bool {
			drafts := p.got(wire.Draft)
			return len(drafts) > 0 && len(drafts[len(drafts)-1].Text) >= n
		}
	}
	w.eventually("a draft", shows(p, len(tale)/4))
	midway := w.attach()
	w.eventually("the draft midway", shows(midway, len(tale)/4))
	goOn()
	for _, one := range []*person{p, midway} {
		w.eventually("more of it", shows(one, len(tale)/2))
	}
	goOn()
	goOn()
	for _, one := range []*person{p, midway} {
		if got := one.hears(1); got != tale {
			t.Errorf("a terminal shows %q", got)
		}
		if drafts := one.got(wire.Draft); one.got(wire.Message)[0].Draft != drafts[0].ID || drafts[0].ID == "" {
			t.Errorf("the message takes the place of %+v, the draft was %+v", one.got(wire.Message)[0], drafts[0])
		}
	}
	p.say("/new") // with nothing running, nothing is taken back
	p.hears(2)
	w.settled()
	if got := p.texts(); len(got) != 2 {
		t.Errorf("the terminal shows %q", got)
	}
}
