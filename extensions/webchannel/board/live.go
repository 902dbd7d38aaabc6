package board

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

const (
	// liveEvery is the least time between two updates, and liveIdle the longest until what
	// happens without an event is seen.
	liveEvery = 500 * time.Millisecond
	liveIdle  = 5 * time.Second
	// liveAlive is how often an open page is told that the connection is.
	liveAlive = 20 * time.Second
	// liveLife is how long a page follows until it asks again, and has to be let in again.
	liveLife = 5 * time.Minute
	// liveWrite is how long a page may take to read an update.
	liveWrite = 10 * time.Second
)

// live sends what goes on now to all open pages. One goroutine reads it while any page is
// open, and writes it once for each language and time zone.
type live struct {
	b *board

	mu        sync.Mutex
	followers map[*follower]struct{}
	stop      context.CancelFunc // of the reader; nil: none runs
	shown     *picture           // the newest one while the reader runs
}

// follower is an open page.
type follower struct {
	view
	next chan []byte // the newest update that was not sent yet
	last string
}

// view is what pages have in common that show the same.
type view struct {
	language string
	zone     *time.Location
}

func newLive(b *board) *live { return &live{b: b, followers: map[*follower]struct{}{}} }

// serve follows what goes on as server-sent events.
func (l *live) serve(w http.ResponseWriter, q *request) {
	f := &follower{view: view{q.v.Language, q.zone}, next: make(chan []byte, 1)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("X-Accel-Buffering", "no")
	c := http.NewResponseController(w)
	send := func(data []byte) bool {
		_ = c.SetWriteDeadline(time.Now().Add(liveWrite))
		_, err := w.Write(data)
		return err == nil && c.Flush() == nil
	}
	if !send([]byte("retry: 2000\n\n")) {
		return
	}
	l.join(f)
	defer l.leave(f)
	alive := time.NewTicker(liveAlive)
	defer alive.Stop()
	over := time.NewTimer(liveLife)
	defer over.Stop()
	for {
		var data []byte
		select {
		case <-q.Context().Done():
			return
		case <-over.C:
			return
		case data = <-f.next:
		case <-alive.C:
			data = []byte(": alive\n\n")
		}
		if !send(data) {
			return
		}
	}
}

func (l *live) join(f *follower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.followers[f] = struct{}{}
	if l.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		l.stop = stop
		go l.read(ctx)
	} else if l.shown != nil {
		l.offer(f, l.shown, map[view]string{})
	}
}

func (l *live) leave(f *follower) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if delete(l.followers, f); len(l.followers) == 0 {
		l.stop()
		l.stop, l.shown = nil, nil
	}
}

// read looks at what goes on, after an event or after a while, until ctx ends.
func (l *live) read(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var following sync.WaitGroup
	following.Go(func() { l.follow(ctx, changed) })
	defer following.Wait()
	for {
		p := l.b.picture(ctx)
		if ctx.Err() != nil {
			return
		}
		l.send(ctx, p)
		if !sleep(ctx, liveEvery, nil) || !sleep(ctx, liveIdle-liveEvery, changed) {
			return
		}
	}
}

// sleep waits until a time has passed or something has changed. It reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-ctx.Done():
		return false
	}
	return true
}

// follow notes each event until ctx ends. When the kernel is away it tries again.
func (l *live) follow(ctx context.Context, changed chan<- struct{}) {
	for ctx.Err() == nil {
		if last, err := admin.LastSeq(ctx, l.b.Read); err == nil {
			events, err := l.b.Read.Events(ctx, &adminv1.EventsRequest{After: last, Follow: true})
			for err == nil { // also before the first event: something may have happened before this
				select {
				case changed <- struct{}{}:
				default:
				}
				_, err = events.Recv()
			}
		}
		sleep(ctx, liveIdle, nil)
	}
}

// send offers a picture to all pages.
func (l *live) send(ctx context.Context, p *picture) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil { // no page is open any more
		return
	}
	l.shown = p
	written := map[view]string{}
	for f := range l.followers {
		l.offer(f, p, written)
	}
}

// offer gives a page the picture unless it has just that; a page that is slow gets the newest.
func (l *live) offer(f *follower, p *picture, written map[view]string) {
	html, ok := written[f.view]
	if !ok {
		html = l.b.draw(f.view, p)
		written[f.view] = html
	}
	if html == "" || html == f.last {
		return
	}
	f.last = html
	select {
	case <-f.next:
	default:
	}
	f.next <- message(html)
}

// message is a server-sent event.
func message(html string) []byte {
	var b bytes.Buffer
	b.WriteString("event: board\n")
	for l := range strings.SplitSeq(html, "\n") {
		fmt.Fprintf(&b, "data: %s\n", strings.TrimRight(l, "\r"))
	}
	b.WriteString("\n")
	return b.Bytes()
}

// draw writes a picture for pages.
func (b *board) draw(v view, p *picture) string {
	q := &request{b: b, v: door.Visitor{Language: v.language, Role: "owner"}, zone: v.zone}
	var out bytes.Buffer
	if err := templates().ExecuteTemplate(&out, "blocks", q.pictureBlocks(p)); err != nil {
		b.Log.Error("write the live board", "error", err)
		return ""
	}
	return out.String()
}
