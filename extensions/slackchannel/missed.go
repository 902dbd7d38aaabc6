package slackchannel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/httpcall"
	"github.com/switchboard-run/switchboard/sdk/pause"
)

// While nothing is connected, Slack sends an event again for six minutes, and drops it.
// So what people wrote meanwhile is read from the histories of the conversations.

const (
	// overlap is read again: clocks differ, and what was received is stored a little later.
	// What is known already is recognized by its dedupe key.
	overlap = 10 * time.Minute
	// maxThreadLife is how old a message may be whose thread is read for new replies.
	maxThreadLife = 7 * 24 * time.Hour
	// maxRead bounds the messages of one conversation that are read.
	maxRead = 2000
	// noteEvery is how often the time until which all is stored is noted.
	noteEvery = 5 * time.Minute
)

// attendance is the stored time until which everything that Slack has sent is stored.
type attendance struct {
	At int64 `json:"at"` // Unix seconds
}

func (r *receiver) attendanceKey() string { return "connected/" + r.me.TeamID }

// lastConnected returns the time of an earlier process; zero: there was none.
func (r *receiver) lastConnected(ctx context.Context) (time.Time, error) {
	var a attendance
	v, err := r.kernel.Get(ctx, r.attendanceKey())
	if err != nil || v.Version == 0 {
		return time.Time{}, err
	}
	if err := v.Decode(&a); err != nil {
		r.log.Error("decode when Slack was last connected", "error", err)
		return time.Time{}, nil
	}
	return time.Unix(a.At, 0), nil
}

// absent notes that nothing was connected since a time; zero: never before.
func (r *receiver) absent(since time.Time) {
	if !since.IsZero() && time.Since(since) <= r.set.times.tolerated {
		r.caughtUp()
		return
	}
	select {
	case r.gaps <- since:
	default: // the gap that waits reaches further back
	}
}

// attend reads what was missed, and notes while it misses nothing, until ctx ends.
func (r *receiver) attend(ctx context.Context) {
	note := time.NewTicker(noteEvery)
	defer note.Stop()
	for {
		select {
		case since := <-r.gaps:
			if !since.IsZero() && !r.readMissed(ctx, since) {
				return
			}
			r.caughtUp()
		case <-note.C:
			if !r.online.Load() {
				continue
			}
		case <-ctx.Done():
			return
		}
		_, err := r.kernel.Commit(ctx, sdk.Put(r.attendanceKey(), attendance{At: time.Now().Unix()}))
		if err != nil && ctx.Err() == nil {
			r.log.Warn("note when Slack was last connected", "error", err)
		}
	}
}

// readMissed publishes what people have written since a time; false: ctx has ended.
func (r *receiver) readMissed(ctx context.Context, since time.Time) bool {
	cursor := ""
	for {
		var page struct {
			Channels []struct {
				ID   string `json:"id"`
				IsIM bool   `json:"is_im"`
			} `json:"channels"`
			Metadata cursorMetadata `json:"response_metadata"`
		}
		err := r.ask(ctx, "users.conversations", url.Values{
			"types": {"im,mpim,public_channel,private_channel"}, "exclude_archived": {"true"},
			"limit": {strconv.Itoa(pageOfHistory)}, "cursor": {cursor},
		}, &page)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			r.log.Error("list the conversations to read what was missed", "error", r.api.redact(err))
			return true
		}
		for _, c := range page.Channels {
			if err := r.readMissedIn(ctx, c.ID, c.IsIM, since); ctx.Err() != nil {
				return false
			} else if err != nil {
				r.log.Warn("read what was missed in a conversation", "conversation", c.ID, "error", r.api.redact(err))
			}
		}
		if cursor = page.Metadata.Next; cursor == "" {
			return true
		}
	}
}

type cursorMetadata struct {
	Next string `json:"next_cursor"`
}

// missed is a message of a history.
type missed struct {
	event
	LatestReply string `json:"latest_reply"`
}

// readMissedIn publishes what people have written in one conversation, and in its threads.
func (r *receiver) readMissedIn(ctx context.Context, id string, direct bool, since time.Time) error {
	oldest := timestamp(since.Add(-overlap))
	all, err := r.pages(ctx, "conversations.history", id, url.Values{"oldest": {timestamp(since.Add(-maxThreadLife))}})
	if err != nil {
		return err
	}
	for _, m := range slices.Clone(all) {
		if !after(m.LatestReply, oldest) {
			continue
		}
		replies, err := r.pages(ctx, "conversations.replies", id, url.Values{"ts": {m.TS}, "oldest": {oldest}})
		if err != nil {
			return err
		}
		for _, reply := range replies {
			if reply.TS != m.TS {
				all = append(all, reply)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b missed) int {
		return cmp.Compare(secondsAndMicros(a.TS), secondsAndMicros(b.TS))
	})
	var batch []received
	for i := range all {
		e := &all[i].event
		e.Channel = id
		if direct {
			e.ChannelType = "im"
		}
		known := !after(e.TS, oldest) // it is too old to have been missed
		var one received
		if !known {
			r.readMessage(ctx, e, &one)
		}
		edited := e.Edited != nil && after(e.Edited.TS, oldest)
		if one.message != nil {
			batch = append(batch, one)
		}
		// A thread is known once it is stored, and so is what becomes of an edit.
		if len(one.effects) > 0 || edited || len(batch) == maxBatch {
			results, err := r.storeAll(ctx, batch)
			if err != nil {
				return err
			}
			known = known || one.message != nil && len(results) > 0 && results[len(results)-1].GetDuplicate()
			batch = nil
		}
		if !edited || !known {
			continue
		}
		change := &event{Subtype: "message_changed", Channel: id, ChannelType: e.ChannelType, Message: e, Previous: &event{}}
		one = received{}
		if r.readMessage(ctx, change, &one); one.message != nil {
			batch = append(batch, one)
		}
	}
	_, err = r.storeAll(ctx, batch)
	return err
}

// pages reads messages, the newest first, at most maxRead.
func (r *receiver) pages(ctx context.Context, method, channel string, q url.Values) (all []missed, err error) {
	q.Set("channel", channel)
	q.Set("limit", strconv.Itoa(pageOfHistory))
	for {
		var page struct {
			Messages lenient[missed] `json:"messages"`
			Metadata cursorMetadata  `json:"response_metadata"`
		}
		if err := r.ask(ctx, method, q, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Messages...)
		if page.Metadata.Next == "" {
			return all, nil
		}
		if len(all) >= maxRead {
			r.log.Warn("a conversation has more messages than are read again", "conversation", channel, "read", len(all))
			return all, nil
		}
		q.Set("cursor", page.Metadata.Next)
	}
}

// ask makes a call that only reads, and repeats it until Slack answers. The library
// would refuse a whole page for a block that it doesn't know.
func (r *receiver) ask(ctx context.Context, method string, q url.Values, into any) error {
	for n := 1; ; n++ {
		err := r.api.read(ctx, method, q, into)
		kind, after := classify(err)
		switch {
		case err == nil:
			return nil
		case kind == badToken:
			after = r.set.times.tokenRetry
		case kind == refused, kind == malformed:
			return err
		}
		if !pause.For(ctx, max(after, pause.Backoff(n))) {
			return ctx.Err()
		}
	}
}

// read makes a call that only reads.
func (a *api) read(ctx context.Context, method string, q url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, httpcall.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+method, strings.NewReader(q.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+a.tokens[0])
	resp, err := a.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &slack.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second}
	}
	var raw json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&raw); err != nil {
		return &httpcall.Error{Err: err}
	}
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(raw, &answer), json.Unmarshal(raw, into)); err != nil {
		return &httpcall.Error{Err: err}
	}
	if !answer.OK {
		return slack.SlackErrorResponse{Err: answer.Error}
	}
	return nil
}

// timestamp returns a time as Slack writes it.
func timestamp(t time.Time) string { return strconv.FormatInt(max(t.Unix(), 0), 10) + ".000000" }

// secondsAndMicros returns a number by which timestamps are compared.
func secondsAndMicros(ts string) int64 {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, _ := strconv.ParseInt(seconds, 10, 64)
	m, _ := strconv.ParseInt((micros + "000000")[:6], 10, 64)
	return s*1e6 + m
}

func after(ts, other string) bool { return ts != "" && secondsAndMicros(ts) > secondsAndMicros(other) }
