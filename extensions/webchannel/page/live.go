package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
)

const (
	beat        = 15 * time.Second // between signs of life
	streamLife  = 5 * time.Minute  // then the browser connects again, and has to be let in again
	writeWithin = 20 * time.Second // that a browser reads
)

var (
	errNotAllowed = &problem{contract.ErrDenied, words.Sprintf("you may not do this")}
	errNotJSON    = &problem{
		contract.ErrInvalid, words.Sprintf("the request is not as the page makes it: reload the page"),
	}
)

// problem is an error for people that wraps a sentinel of package contract.
type problem struct {
	kind error
	text string
}

func (p *problem) Error() string { return p.text }
func (p *problem) Unwrap() error { return p.kind }

// number is a number of the query; 0: none.
func number(r *http.Request, name string) int64 {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// Events is a stream of events to a browser, for the function stream of shell.js. It is safe
// for concurrent use.
type Events struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
}

// Stream answers a request with a stream of events: each of the functions runs until ctx is
// done or one of them returns. It ends after some minutes, and the browser comes again.
func Stream(w http.ResponseWriter, r *http.Request, run ...func(ctx context.Context, e *Events) error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would wait for more
	e := &Events{w: w, control: http.NewResponseController(w)}
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	var running sync.WaitGroup
	for _, f := range append(run, e.beats) {
		running.Go(func() {
			defer cancel()
			_ = f(ctx, e) // the browser comes again
		})
	}
	running.Wait()
	if r.Context().Err() == nil {
		_ = e.Send("bye", "", struct{}{})
	}
}

func (e *Events) beats(ctx context.Context, _ *Events) error {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		if err := e.Send("beat", "", struct{}{}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Send sends an event: its type, its id if it has one, and its data as JSON.
func (e *Events) Send(kind, id string, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var frame bytes.Buffer
	if id != "" {
		fmt.Fprintf(&frame, "id: %s\n", id)
	}
	fmt.Fprintf(&frame, "event: %s\ndata: %s\n\n", kind, b)
	e.mu.Lock()
	defer e.mu.Unlock()
	err = e.control.SetWriteDeadline(time.Now().Add(writeWithin))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write(frame.Bytes()); err != nil {
		return err
	}
	return e.control.Flush()
}

// draftFrame is a draft as the script gets it.
type draftFrame struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
	Done bool   `json:"done,omitempty"`
}

// changeFrame is a conversation that has changed, as the script gets it.
type changeFrame struct {
	Name    string `json:"name"`
	Unread  int    `json:"unread"`
	Deleted bool   `json:"deleted,omitempty"`
	HTML    string `json:"html,omitempty"`
	Label   string `json:"label"`
}

// live streams what happens in a conversation, and which others change.
func (c *chats) live(w http.ResponseWriter, r *http.Request) {
	v := door.From(r.Context())
	if !v.May(door.ScopeMessages, false) {
		Problem(w, r, errNotAllowed)
		return
	}
	name, after := r.URL.Query().Get("c"), number(r, "after")
	if last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil && last >= 0 {
		after = last
	}
	all := r.URL.Query().Has("all")
	Stream(w, r, func(ctx context.Context, e *Events) error {
		for f, err := range c.Chat.Follow(ctx, v, name, after) {
			if err == nil {
				err = sendFrame(e, v, f)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, e *Events) error {
		for change, err := range c.Watch(ctx, v) {
			if err == nil && (all || !strings.HasPrefix(change.Name, programs)) {
				err = sendChange(e, v, change, change.Name == name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func sendFrame(e *Events, v door.Visitor, f chat.Frame) error {
	if f.Draft != nil {
		d := draftFrame{ID: f.Draft.ID, Done: f.Draft.Done, HTML: string(Markdown(f.Draft.Text))}
		return e.Send("draft", "", d)
	}
	l, err := frameOf(v, *f.Line)
	if err != nil {
		return err
	}
	return e.Send("line", strconv.FormatInt(l.Seq, 10), l)
}

func sendChange(e *Events, v door.Visitor, change chat.Change, current bool) error {
	item := conversationView{View: View{Visitor: v}, Conversation: change.Conversation, Current: current}
	f := changeFrame{Name: change.Name, Unread: change.Unread, Deleted: change.Deleted, Label: item.Label()}
	if !change.Deleted {
		var b bytes.Buffer
		if err := chatPage().Lookup("conversation").Execute(&b, item); err != nil {
			return err
		}
		f.HTML = b.String()
	}
	return e.Send("conversation", "", f)
}
